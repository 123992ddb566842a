"""Partition eviction: which keys are forgotten and when, and the lifetimes into which that divides a key's rows.

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.panes`,
`windowing.sequences`, `windowing.state`, `windowing.support`. Imported by `windowing.emit`, `windowing.engine`,
`windowing.kinds.batched`, `windowing.kinds.contract`, `windowing.kinds.event_time`, `windowing.kinds.signals`,
`windowing.kinds.sliding`, `windowing.kinds.tumbling`, `windowing.scan`.
"""
