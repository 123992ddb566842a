"""The window language: text to frozen values and back, without any access to data.

The entry points are `parser.parse_window`, `parser.parse_aggregate` and `parser.parse_duration`; `spec` defines the
values. `calls`, `policies` and `tokens` know the words of the language, for completion and for suggestions.

Imports `windowing.errors`, `windowing.expressions`, `windowing.support`. Imported by `cli`, `conf`,
`windowing.aggregates`, `windowing.arguments`, `windowing.clock`, `windowing.dataframes`, `windowing.drawings`,
`windowing.emit`, `windowing.enrichment`, `windowing.in_memory`, `windowing.kinds`, `windowing.panes`,
`windowing.planning`, `windowing.projection`, `windowing.streaming`.
"""
