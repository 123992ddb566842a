"""The encoder of each output format, and of rejects.

`writers.formats.encoder` finds them by `windowing.support.formats`; encoders write to an open file and know no folders.

Imports `windowing`. Imported by `cli`, `writers.output`, `writers.state`.
"""
