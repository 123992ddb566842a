"""Sliding windows: rows are evicted and panes triggered, each by count, delta or time (semantics section 3)."""
