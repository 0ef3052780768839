"""What several policies are made of: what they learn, and how it moves."""
