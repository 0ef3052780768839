"""What people read: pages of plain text, cards, items, terms."""
