"""What a log says to the questions that choose a policy: see `seen.Seen`."""
