"""The latest price of each symbol, emitted only when it has moved by more than half a unit since it was last emitted.

    wincli run --window "tumbling, time(1m)" --operator wincli.conf.examples.latest_moves:LatestMoves ticks/ moves/

Once a minute the operator looks at each symbol with a price in that minute. A symbol that hardly moved is not emitted,
however many prices it has; many small moves in one direction add up until it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from ...windowing.operator import Operator, PaneInfo, Row


class LatestMoves(Operator):
    """Needs columns ``symbol`` and ``price``. For another amount derive a class that sets ``more_than``."""

    output: ClassVar = {"symbol": str, "price": float, "moved": float}
    more_than = 0.5

    def __init__(self) -> None:
        self.emitted: dict[str, float] = {}  # symbol to the price that the result last had for it

    def trigger(self, rows: Sequence[Row], pane: PaneInfo) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        """Emit the symbols of the pane that moved, in alphabetical order; ``moved`` is null for the first price."""
        latest = {row["symbol"]: row["price"] for row in rows if row["price"] is not None}
        for symbol, price in sorted(latest.items()):
            before = self.emitted.get(symbol)
            if before is None or abs(price - before) > self.more_than:
                self.emitted[symbol] = price
                yield {"symbol": symbol, "price": price, "moved": None if before is None else price - before}
