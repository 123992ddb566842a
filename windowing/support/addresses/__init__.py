"""Paths and URIs: what is secret in them, the file system behind them, and what a store says when it refuses.

Imports nothing. Imported by `cli`, `conf`, `readers`, `windowing.support.checksum`, `windowing.tables`, `writers`.
"""
