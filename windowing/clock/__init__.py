"""Time: the clock column as numbers, grids of ticks, local days and intervals, and the watermark.

Imports `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.sequences`, `windowing.support`.
Imported by `cli`, `readers`, `windowing.engine`, `windowing.kinds`, `windowing.planning`, `windowing.scan`,
`windowing.streaming`.
"""
