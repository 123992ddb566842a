"""Text before it is parsed: where records of CSV and JSON Lines begin and end in bytes, of which kind their values are,
where those of plain records stand, and JSON that is too deep or torn.

Imports `readers.schema`, `windowing`. Imported by `readers.formats`, `readers.values`.
"""
