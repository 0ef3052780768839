"""Arms against each other: checks before numbers, five verdicts."""
