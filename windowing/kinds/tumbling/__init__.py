"""Tumbling windows, each row in one: the contract of a policy, and the policies."""
