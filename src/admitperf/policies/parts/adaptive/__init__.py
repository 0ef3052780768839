"""Limits that follow what they see."""
