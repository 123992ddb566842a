"""Windows over both sides of a join: which rows of the left and of the right are there together."""
