"""Partition eviction: which keys are forgotten and when, and the lifetimes into which that divides a key's rows."""
