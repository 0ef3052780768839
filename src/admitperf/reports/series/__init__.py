"""Numbers over time, for whoever draws them."""
