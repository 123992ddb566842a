"""One scan: validate rows, compute panes, leave out what an earlier run emitted, emit, keep what the next run needs.

The way in is `scan.scan`.

Imports `windowing.clock`, `windowing.columns`, `windowing.emit`, `windowing.expressions`, `windowing.kinds`,
`windowing.panes`, `windowing.planning`, `windowing.projection`, `windowing.sequences`, `windowing.state`. Imported by
`cli`, `windowing.engine`, `windowing.segments`, `windowing.streaming`.
"""
