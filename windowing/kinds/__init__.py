"""The kinds of window: each a function from a spec and sequences of rows to panes, and all that follows from it.

`contract.WindowKind` is what the program asks of a kind; `registry.kind_of` maps a spec to its kind, and nothing else
asks for the type of a spec. Kinds see `context.WindowContext`, never the plan.

Imports `windowing.aggregates`, `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.expressions`,
`windowing.language`, `windowing.panes`, `windowing.sequences`, `windowing.state`, `windowing.support`. Imported by
`cli`, `windowing.emit`, `windowing.engine`, `windowing.planning`, `windowing.scan`, `windowing.segments`,
`windowing.streaming`.
"""
