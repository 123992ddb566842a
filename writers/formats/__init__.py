"""The encoder of each output format, and of rejects.

`writers.output.sink` chooses among them; encoders write to an open file and know no folders.

Imports `windowing`. Imported by `cli`, `writers.output`, `writers.state`.
"""
