"""Pages as data: what stands on a page, whoever shows it."""
