"""Sums, means, deviations and weighted means that are the float nearest to the exact value (semantics section 9).

`functions.arithmetic` and `two_phase` import from here.
"""
