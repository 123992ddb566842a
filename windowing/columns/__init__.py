"""Arrow columns as numpy arrays: numeric values, sort keys, and the sorts over them; no module here knows windows."""
