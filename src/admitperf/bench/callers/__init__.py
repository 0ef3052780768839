"""Who asks what when, what they do when refused, and what came of each call."""
