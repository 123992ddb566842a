"""Arrow columns as numpy arrays: numbers to measure with, keys to sort by, and the sorts over them."""
