"""Files of a log, found, opened and vetted line by line."""
