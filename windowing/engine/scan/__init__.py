"""The reduce side: the blocks of a slice are merged and scanned; keys too heavy for a slice are scanned in segments."""
