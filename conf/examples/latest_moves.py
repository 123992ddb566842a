"""The latest price of each symbol, told only when it has moved by more than half a unit since it was last told.

    wincli run --window "tumbling, time(1m)" --operator conf.examples.latest_moves:LatestMoves ticks/ moves/

Once a minute, each symbol that came in that minute is looked at. One that hardly moved says nothing, however often its
price came; and many small moves in one direction add up until they are told.
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
        self.told: dict[str, float] = {}  # what the reader of the result knows of each symbol

    def trigger(self, rows: Sequence[Row], pane: PaneInfo) -> Iterator[dict[str, Any]]:  # noqa: ARG002
        """Tell the symbols of the pane that moved, in alphabetical order; ``moved`` is null at a symbol's first."""
        latest = {row["symbol"]: row["price"] for row in rows if row["price"] is not None}
        for symbol, price in sorted(latest.items()):
            before = self.told.get(symbol)
            if before is None or abs(price - before) > self.more_than:
                self.told[symbol] = price
                yield {"symbol": symbol, "price": price, "moved": None if before is None else price - before}
