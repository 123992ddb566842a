"""Which windows two results do not have in common, and whether results and states are what was written."""
