"""The window state: what windows keep from one run to the next, as values and as Arrow tables.

`writers.state` writes the tables of `state_tables` into the folder of a state; `one_table` is what users keep.

Imports `windowing.columns`, `windowing.errors`, `windowing.panes`, `windowing.sequences`, `windowing.support`. Imported
by `cli`, `windowing.dataframes`, `windowing.emit`, `windowing.engine`, `windowing.kinds`, `windowing.planning`,
`windowing.scan`, `windowing.segments`, `windowing.streaming`, `writers`.
"""
