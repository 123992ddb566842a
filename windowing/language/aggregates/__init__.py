"""Aggregates in the window language: their names, and how a call is read from text.

Imports `windowing.errors`, `windowing.expressions`, `windowing.language.calls`, `windowing.language.canonical`,
`windowing.language.spec`, `windowing.language.tokens`, `windowing.support`. Imported by `cli`,
`windowing.language.parser`.
"""
