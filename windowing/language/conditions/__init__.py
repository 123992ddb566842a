"""Windows that follow conditions: operands that are columns or expressions, and the policies that take them.

Imports `windowing.errors`, `windowing.expressions`, `windowing.language.calls`, `windowing.language.canonical`,
`windowing.language.tokens`. Imported by `cli`, `windowing.kinds`, `windowing.language.policies`,
`windowing.language.row_policies`, `windowing.language.sentences`, `windowing.language.spec`, `windowing.planning`.
"""
