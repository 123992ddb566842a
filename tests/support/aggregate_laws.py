"""Laws that hold for the aggregates over any panes: which functions are held against their twins over which columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from support.aggregate_checks import EVERYTHING, NUMBERS, SORTABLE, TIMES, WIDE, check

Kind = tuple[pa.DataType, st.SearchStrategy[Any]]


@dataclass(frozen=True, slots=True)
class Law:
    """Functions that give what their twins give; ``literals`` are what some of them take beside the columns."""

    functions: tuple[str, ...]
    columns: tuple[Kind, ...]
    literals: Mapping[str, st.SearchStrategy[Any]]

    def check(self, data: st.DataObject, samples: Callable[..., st.SearchStrategy[Any]]) -> None:
        """Draw rows and panes from ``samples`` of the columns, and compare."""
        rows, panes = data.draw(samples(*self.columns))
        for function in self.functions:
            literal = self.literals.get(function)
            check(function, rows, panes, [] if literal is None else [data.draw(literal)])


def laws(
    kinds: Mapping[str, Kind],
    *functions: str,
    beside: Mapping[str, Kind] | None = None,
    **literals: st.SearchStrategy[Any],
) -> list[Any]:
    """A parameter ``law`` for a column of each of the kinds, with one of each kind in ``beside`` for a second one."""
    columns = {name: (kind,) for name, kind in kinds.items()}
    if beside is not None:
        columns = {f"{a} {b}": (kinds[a], beside[b]) for a in kinds for b in beside}
    every = (*functions, *literals)
    return [pytest.param(Law(every, some, literals), id=f"{every[0]} {name}") for name, some in columns.items()]


def named(*names: str) -> dict[str, Kind]:
    return {name: EVERYTHING[name] for name in names}


WEIGHTS = {"weights": (pa.float64(), st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0, math.inf, math.nan]))}
SEPARATORS = st.text("-, ", max_size=2)

ANY_PANES = [
    *laws(NUMBERS, "sum", "mean", "median", "range", quantile=st.integers(0, 1000).map(lambda n: Fraction(n, 1000))),
    *laws(TIMES, "range"),
    *laws(named("duration"), "sum"),
    *laws({n: kind for n, kind in NUMBERS.items() if kind[1] is not WIDE}, "var", "stddev", "var_pop", "stddev_pop"),
    *laws(SORTABLE, "min", "max", "mode", "count_distinct", "collect_distinct", "min_count", "max_count"),
    *laws(EVERYTHING, "count", "first", "last", "collect", nth=st.integers(-4, 4).map(Fraction)),
    *laws(named("small ints", "float64", "decimal(12,2)"), "wavg", beside=WEIGHTS),
    *laws(named("bool"), "bool_and", "bool_or", "mean", "sum"),
    *laws(named("string"), string_join=SEPARATORS),
]
