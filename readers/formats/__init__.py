"""The reader of each input format, which reads one split of a file.

`readers.open` chooses among them; a `readers.source.FileSource` calls them in tasks.
"""
