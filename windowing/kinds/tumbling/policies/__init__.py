"""The tumbling policies, a module each: where windows start, and what closed each of them.

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.kinds.context`,
`windowing.kinds.contract`, `windowing.kinds.delta`, `windowing.kinds.eviction`, `windowing.kinds.measured`,
`windowing.kinds.segment_summary`, `windowing.kinds.tumbling.boundaries`, `windowing.kinds.tumbling.clock_policy`,
`windowing.kinds.tumbling.condition_policy`, `windowing.kinds.tumbling.measured_policy`,
`windowing.kinds.tumbling.policy`, `windowing.kinds.tumbling.rule_policy`, `windowing.kinds.tumbling.rules`,
`windowing.language`, `windowing.panes`, `windowing.sequences`, `windowing.support`. Imported by
`windowing.kinds.tumbling.registry`.
"""
