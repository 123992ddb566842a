"""The window language: text to frozen values and back. It knows no data.

The ways in are `parser.parse_window` and `parser.parse_aggregate`; `spec` holds the values.
"""
