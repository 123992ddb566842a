"""A window bound to the columns of an input: checked, with its order, and with the schema of its result.

The entry point is `plan.make_plan`; the scan, the engine and the tasks get a `plan.Plan`.

Imports `windowing.aggregates`, `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.expressions`,
`windowing.kinds`, `windowing.language`, `windowing.operator`, `windowing.ports`, `windowing.projection`,
`windowing.state`,
`windowing.support`. Imported by `cli`, `windowing.arguments`, `windowing.dataframes`, `windowing.drawings`,
`windowing.emit`, `windowing.engine`, `windowing.in_memory`, `windowing.scan`, `windowing.segments`,
`windowing.streaming`, `writers`.
"""
