"""The context shipped to every task, sizes of chunks and slices, snapshots of the window state, and rejects.

Imports `windowing.clock`, `windowing.columns`, `windowing.expressions`, `windowing.panes`, `windowing.planning`,
`windowing.ports`, `windowing.projection`, `windowing.scan`, `windowing.state`. Imported by `cli`,
`windowing.engine.enrich`, `windowing.engine.exchange`, `windowing.engine.presorted`, `windowing.engine.run`,
`windowing.engine.run_strategy`, `windowing.engine.scan`, `windowing.engine.strategy`, `windowing.engine.window_memory`.
"""
