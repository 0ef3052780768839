"""Runs a benchmark: calibrates, drives every arm over the plan, writes it all down."""
