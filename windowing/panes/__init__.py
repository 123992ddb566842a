"""Panes, which every kind of window returns, and membership: which rows each pane shows.

Imports `windowing.columns`, `windowing.language`, `windowing.support`. Imported by `cli`, `windowing.aggregates`,
`windowing.emit`, `windowing.engine`, `windowing.kinds`, `windowing.scan`, `windowing.segments`, `windowing.state`,
`windowing.streaming`.
"""
