"""A benchmark's verdict as a page, a plot and a document."""
