"""The kinds of window: each a function from a spec and sequences of rows to panes.

`scan.dispatch` calls them; they see `context.WindowContext`, never the plan.

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.panes`,
`windowing.sequences`, `windowing.state`, `windowing.support`. Imported by `windowing.emit`, `windowing.engine`,
`windowing.scan`, `windowing.segments`.
"""
