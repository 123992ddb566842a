"""Text as records: where those of CSV and JSON Lines begin and end in bytes, and JSON that is too deep or torn.

Imports `readers.schema`, `windowing`. Imported by `readers.formats`, `readers.values`.
"""
