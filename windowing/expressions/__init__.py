"""Expressions over columns: a subset of SQL, bound to a schema and computed over whole Arrow columns (section 11).

`syntax.parse_expression` reads a text, `binding.bind` finds its types, and the value that it returns computes it.

Imports `windowing.errors`, `windowing.support`. Imported by `cli`, `conf`, `readers`, `windowing.arguments`,
`windowing.dataframes`, `windowing.engine`, `windowing.kinds`, `windowing.language`, `windowing.planning`,
`windowing.projection`, `windowing.scan`, `writers`.
"""
