"""Iceberg tables through pyiceberg: addresses, catalogs, field ids, snapshots, and one commit that replaces files.

pyiceberg is imported inside functions: only a run that names such a table loads it.

Imports `windowing.errors`, `windowing.support`, `windowing.tables.address`, `windowing.tables.statistics`,
`windowing.tables.table_version`. Imported by `writers`.
"""
