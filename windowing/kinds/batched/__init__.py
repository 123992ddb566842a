"""Batched windows: a pane for each change of the visible rows (semantics section 6)."""
