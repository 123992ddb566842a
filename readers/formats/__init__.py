"""The reader of each input format, which reads one split of a file.

`readers.open` chooses among them by `windowing.support.formats`; a `readers.source.FileSource` calls them in tasks.

Imports `readers.files`, `readers.options`, `readers.schema`, `readers.text`, `readers.values`, `windowing`. Imported by
`cli`, `readers.open`, `readers.source`.
"""
