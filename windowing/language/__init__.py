"""The window language: text to frozen values, back, and to English; it knows no data."""
