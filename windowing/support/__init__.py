"""Helpers without any knowledge of windows: kernels, suggestions, redaction, checksums, declarations of options.

Imports nothing. Imported by `cli`, `conf`, `readers`, `windowing.aggregates`, `windowing.arguments`, `windowing.clock`,
`windowing.columns`, `windowing.dataframes`, `windowing.drawings`, `windowing.emit`, `windowing.enrichment`,
`windowing.expressions`, `windowing.kinds`, `windowing.language`, `windowing.operator`, `windowing.panes`,
`windowing.planning`, `windowing.sequences`, `windowing.spark`, `windowing.state`, `windowing.streaming`,
`windowing.tables`, `writers`.
"""
