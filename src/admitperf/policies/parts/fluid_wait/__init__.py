"""The fluid model of `fluid_wait_inspired`."""
