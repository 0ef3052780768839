"""A window of sessions that follows what they meet."""
