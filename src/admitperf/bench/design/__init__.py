"""What a benchmark runs and may claim: the plan, the checks and the verdict."""
