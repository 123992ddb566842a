"""A compressed binary trie over ranks. Its shape depends on the ranks alone, so folds through it associate by rank."""

from __future__ import annotations

import numpy as np

from ...columns.arrays import Ints
from ...support.jit import kernel


@kernel
def trie(rank: Ints) -> tuple[Ints, Ints, Ints, int]:
    """Return the trie over m distinct ranks: two ranks separate at the highest bit in which they differ.

    ``rank``: int64 (E,), ascending, 0 or more; equal ranks share one leaf. Leaf k is node 2k, and node 2k + 1 separates
    leaf k from leaf k + 1, so node numbers rise from left to right. Returns the node of each rank, int64
    (E,); the parent of each of the 2m - 1 nodes, -1 for the root; the sibling of each node; and the root, 0 for an
    empty trie.
    """
    node = np.empty(rank.size, np.int64)
    parent = np.full(max(1, 2 * rank.size), -1, np.int64)
    sibling = parent.copy()
    # One pass over ascending ranks, O(E). The stack holds the right edge of the trie: inner nodes from the root down
    # whose right subtree is not complete. 64 bits of a rank bound its depth.
    right_edge = np.empty(65, np.int64)  # the node at each depth
    left = np.empty(65, np.int64)  # root of its left subtree
    bits = np.empty(65, np.int64)  # exclusive or of the two ranks that it separates; falls with depth
    depth = 0
    top = 0  # root of the complete subtree to the right of the whole stack
    for i in range(rank.size):
        if i == 0 or rank[i] == rank[i - 1]:
            node[i] = top if i == 0 else node[i - 1]
            continue
        node[i] = node[i - 1] + 2
        differ = rank[i] ^ rank[i - 1]
        # Nodes that separate at a lower bit are complete: the new rank lies to the right of all their leaves.
        while depth > 0 and bits[depth - 1] < differ:
            depth -= 1
            top = _join_nodes(parent, sibling, right_edge[depth], left[depth], top)
        right_edge[depth], left[depth], bits[depth] = node[i] - 1, top, differ
        depth += 1
        top = node[i]
    while depth > 0:
        depth -= 1
        top = _join_nodes(parent, sibling, right_edge[depth], left[depth], top)
    return node, parent, sibling, top


@kernel
def _join_nodes(parent: Ints, sibling: Ints, node: int, left: int, right: int) -> int:
    """Make two subtrees the children of a node, and return the node."""
    parent[left] = parent[right] = node
    sibling[left], sibling[right] = right, left
    return node
