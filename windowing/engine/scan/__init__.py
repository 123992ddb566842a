"""The reduce side: the blocks of a slice are merged and scanned; keys heavier than a slice are scanned in segments."""
