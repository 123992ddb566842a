"""One output, from the first check of its folder to the commit.

The entry point is `output.open_output`; `sink` is shipped to the tasks.

Imports `windowing`, `writers.commit`, `writers.folders`, `writers.formats`. Imported by `cli`, `writers.state`.
"""
