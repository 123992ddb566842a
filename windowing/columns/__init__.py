"""Arrow columns as numpy arrays: numeric values, sort keys, and the sorts over them; no module here knows windows.

Imports `windowing.errors`, `windowing.support`. Imported by `cli`, `readers`, `windowing.aggregates`,
`windowing.arguments`, `windowing.clock`, `windowing.dataframes`, `windowing.drawings`, `windowing.emit`,
`windowing.engine`, `windowing.enrichment`, `windowing.kinds`, `windowing.panes`, `windowing.planning`,
`windowing.projection`, `windowing.scan`, `windowing.segments`, `windowing.sequences`, `windowing.state`,
`windowing.streaming`, `writers`.
"""
