"""Windows over batches: each goes on from the window state of those before, so a stream of any length goes through.

The ways in are `batch_scan.BatchScan`, `keyed_scan.KeyedScan` and `aggregate_stream`.

Imports

Imports `windowing.arguments`, `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.kinds`,
`windowing.language`, `windowing.panes`, `windowing.planning`, `windowing.ports`, `windowing.projection`,
`windowing.scan`, `windowing.sequences`, `windowing.state`, `windowing.support`. Imported by `windowing.dataframes`,
`windowing.drawings`, `windowing.in_memory`, `writers`.
"""
