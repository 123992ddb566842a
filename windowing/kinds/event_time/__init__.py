"""Event-time windows: intervals that a watermark completes (semantics section 5)."""
