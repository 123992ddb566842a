"""Tumbling windows: each row is in one window (semantics section 2)."""
