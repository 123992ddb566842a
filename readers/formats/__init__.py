"""The reader of each input format, which reads one split of a file.

`readers.open` chooses among them; a `readers.source.FileSource` calls them in tasks.

Imports `readers.files`, `readers.schema`, `readers.text`, `readers.values`, `windowing`. Imported by `cli`,
`readers.open`, `readers.source`.
"""
