"""Column types: declared in a schema, inferred from text, or unified over files; formats of timestamps.

Imports `windowing`. Imported by `cli`, `readers.files`, `readers.folder_columns`, `readers.formats`,
`readers.merged_source`, `readers.open`, `readers.options`, `readers.source`, `readers.text`, `readers.time_hints`,
`readers.values`.
"""
