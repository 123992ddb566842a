"""Folders on disk or in an object store: their names, locks and atomic replacement, and the system's errors in words.

The other packages of `writers` import from any of its modules; it imports none of them.
"""
