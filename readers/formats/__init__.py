"""One reader for each input format, over the splits of a file.

`readers.open` chooses among them; a `readers.source.FileSource` calls them in tasks.
"""
