"""What the two lanes of row patterns take and find: rows with their symbols in, matches out (semantics section 15)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.arrays import Ints

BY_LIMIT, AT_END = -2, -1
"""In ``Matches.decided``: a limit of ``within`` has passed, or the data has ended. As causes of panes."""

ANY_ROW: Final = -1
"""In place of a symbol: ``.``, any row."""


class Rows(NamedTuple):
    """The n rows of K keys, key after key, each key's rows in order.

    ``bounds``: int64 (K+1,), the rows of each key.
    ``symbols``: uint64 (n,), bit s is set where the condition of symbol s is true; where it reads matched rows, where
        it may be true.
    ``clock``: int64 or float64 (n,), where there is a limit; else empty. It never falls within a key.
    ``limit``: the limit in measures of the clock: a row is out from ``clock[first] + limit`` on. 0: no limit.
    ``now``: the clock behind all rows of all keys, in measures.
    """

    bounds: Ints
    symbols: npt.NDArray[np.uint64]
    clock: Any
    limit: Any
    now: Any


class Matches(NamedTuple):
    """M matches, key after key and in a key in the order of their starts, whatever brings them out.

    ``key``: int64 (M,), the key, ascending.
    ``bounds``: int64 (M+1,), the entries of each match: it takes at least one row.
    ``row``: int64 (E,), the rows that matches take, ascending in each match.
    ``symbol``: int16 (E,), as what each is taken: the number of a symbol, or `ANY_ROW`.
    ``decided``: int64 (M,), the row that decides the match, and all starts before it; or `BY_LIMIT`, `AT_END`.
    ``limit``: as ``Rows.clock`` (M,), the instant of the limit that decides it, where it is one; any value else.
    ``undecided``: int64 (K,), the first start of each key that rows to come may still decide otherwise; the end of the
        key's rows where there is none. Matches from it on are decided `AT_END`, and they are all such matches.
    """

    key: Ints
    bounds: Ints
    row: Ints
    symbol: npt.NDArray[np.int16]
    decided: Ints
    limit: Any
    undecided: Ints
