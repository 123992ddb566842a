"""Readers of event logs: one file per format, one contract, `windowing.ports.Source`.

`readers.open.open_source` is the way in; `readers.options` is light enough to be imported by a command line's help.
"""
