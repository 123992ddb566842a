"""Time: the clock column as numbers, grids of ticks, local days and intervals, and the watermark.

Imports `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.sequences`, `windowing.support`.
Imported by `cli`, `windowing.engine`, `windowing.kinds`, `windowing.scan`, `windowing.streaming`.
"""
