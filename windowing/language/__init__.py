"""The window language: text to frozen values and back, without any access to data.

The entry points are `parser.parse_window` and `parser.parse_aggregate`; `spec` defines the values.
"""
