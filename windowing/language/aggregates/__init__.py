"""Aggregates in the window language: their names, and how a call is read from text.

Imports `windowing.language.calls`, `windowing.language.spec`, `windowing.language.tokens`. Imported by `cli`,
`windowing.language.parser`.
"""
