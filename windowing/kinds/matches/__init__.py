"""Row patterns as a kind of window: which rows of a key a pattern takes (semantics section 15)."""
