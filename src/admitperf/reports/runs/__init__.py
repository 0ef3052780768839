"""The lines of a log as tables, and what a run adds up to."""
