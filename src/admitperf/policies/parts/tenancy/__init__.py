"""What tenants took, and what they may."""
