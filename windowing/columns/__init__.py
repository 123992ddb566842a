"""Arrow columns as numpy arrays: values, sort keys, hashes, and the sorts over them."""
