"""The window state: what windows keep from one run to the next, as values and as Arrow tables.

`writers.state` writes these tables into the folder of a state.

Imports `windowing.columns`, `windowing.sequences`. Imported by `windowing.emit`, `windowing.engine`, `windowing.kinds`,
`windowing.scan`, `windowing.segments`, `windowing.streaming`, `writers`.
"""
