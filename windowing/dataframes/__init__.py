"""Windows over Spark DataFrames by their public API alone: the rows are laid out, and tasks scan Arrow batches.

The ways in are `windows.windows` and `windows.windowed`.

Imports

Imports `windowing.aggregates`, `windowing.arguments`, `windowing.columns`, `windowing.errors`, `windowing.expressions`,
`windowing.language`, `windowing.planning`, `windowing.projection`, `windowing.spark`, `windowing.state`,
`windowing.streaming`, `windowing.support`. Imported by nothing.
"""
