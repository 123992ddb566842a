"""The reduce side: the blocks of a slice are merged and scanned; keys heavier than a slice are scanned in segments.

Imports `windowing.clock`, `windowing.columns`, `windowing.engine.exchange`, `windowing.engine.tasks`,
`windowing.kinds`, `windowing.local_executor`, `windowing.panes`, `windowing.planning`, `windowing.ports`,
`windowing.scan`, `windowing.segments`, `windowing.sequences`, `windowing.state`. Imported by `cli`,
`windowing.engine.presorted`, `windowing.engine.run`, `windowing.engine.run_strategy`.
"""
