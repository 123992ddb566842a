"""Inputs: paths and options to a `windowing.ports.Source`.

The way in is `open.open_source`; `options` is light enough for a command line's help.
"""
