"""One encoder for each format of a result, and the one of rejects.

`writers.output.sink` chooses among them; they know no folders.
"""
