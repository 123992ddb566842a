"""Delta tables through deltalake: versions as readers see them, types of columns, one transaction for a result.

Imports `windowing.errors`, `windowing.support`, `windowing.tables.address`, `windowing.tables.statistics`,
`windowing.tables.table_version`. Imported by `writers`.
"""
