"""What `qlm_inspired` is made of: groups, how long they wait, and their order."""
