"""What a folder that wincli wrote holds: a result, the results of a range, or a state."""
