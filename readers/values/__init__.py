"""Conversion of a column of texts or numbers to its type, with a mask of the rows whose value does not fit.

Imports `readers.schema`, `readers.text`, `windowing`. Imported by `cli`, `readers.open`, `readers.formats`,
`readers.source`, `readers.time_hints`.
"""
