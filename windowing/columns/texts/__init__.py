"""Texts: their order, by radix sort of words made of their bytes, and texts in another order.

Imports `windowing.columns.arrays`, `windowing.columns.radix_sort`, `windowing.support`. Imported by
`windowing.columns.sort_keys`, `windowing.emit`, `windowing.sequences`.
"""
