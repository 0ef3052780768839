"""What is asked of engines, by whom and when."""
