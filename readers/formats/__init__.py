"""The reader of each input format, and how files become splits with exact positions."""
