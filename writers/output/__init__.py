"""One output, from the first check of its folder to the commit.

The way in is `output.open_output`; `sink` goes to the tasks.
"""
