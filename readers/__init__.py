"""Inputs: turns paths and options into a `windowing.ports.Source`.

The entry point is `open.open_source`; `options` is cheap to import, so that ``--help`` can use it.
"""
