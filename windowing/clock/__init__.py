"""Time: the clock column as numbers, grids of ticks, local days and intervals, and the watermark."""
