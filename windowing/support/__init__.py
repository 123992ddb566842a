"""Helpers without any knowledge of windows: kernel compilation, suggestions, redaction, checksums, the module path.

Imports nothing. Imported by `cli`, `conf`, `readers`, `windowing.aggregates`, `windowing.clock`, `windowing.columns`,
`windowing.emit`, `windowing.in_memory`, `windowing.kinds`, `windowing.language`, `windowing.operator`,
`windowing.panes`, `windowing.planning`, `windowing.sequences`, `windowing.spark`, `writers`.
"""
