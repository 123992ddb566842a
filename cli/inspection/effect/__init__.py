"""The effect of a correction before it is published: computed in a scratch folder, and compared with what is there.

Imports nothing.
"""
