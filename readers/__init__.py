"""Inputs: turns paths and options into a `windowing.ports.Source`.

The entry points are `open.open_source`, `open.open_result` for a result of wincli, and `merged_source` for several
sources as one; `options` is cheap to import, so that ``--help`` can use it.

Imports `windowing`. Imported by `cli`.
"""
