"""Random joins over windows: two logs or one, all windows and HOW, with what the reference says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from references import joins
from references.event_time import intervals
from references.tumbling import Count, Delta, Gap, Pane, Punct, Row, Time, read, seconds_per_unit, tumbling
from support.join_cases import aggregates_of, condition_of, lots_of

KINDS = [pa.int64(), pa.int64(), pa.float64(), pa.timestamp("ms"), pa.timestamp("s")]
SLIDING = ["count(0)", "count(1)", "count(2)", "count(3)", "time(1)", "time(3)", "delta(m, 2)"]
BATCHED = [
    "retain 1", "retain 2", "within 2", "within 3", "within 3 retain 2", "within 4 every 2", "within 2 every 3",
    "retain 2 every 2", "retain 2 every 3", "within 3 every 3 retain 2", "retain 3 with unique m",
    "within 3 with unique m", "partition by m retain 1", "partition by m within 3 every 2 retain 1",
]  # fmt: skip
ONE_WINDOW = [
    "time(2)",
    "time(3)",
    "count(1)",
    "count(3)",
    "gap(t, 1)",
    "delta(t, 2)",
    "punct(x = 1)",
    "gap(t, 1) or count(3)",
]
INTERVALS = [
    "timeInterval, intervalDuration(3)",
    "timeInterval, intervalDuration(4), creationPeriod(2)",
    "timeInterval, intervalDuration(3), discardAge(2)",
]
CALLS = [
    "n=count()",
    "c=count(r_id)",
    "s=sum(r_v)",
    "f=first(r_id)",
    "l=last(id)",
    "d=sum(x - r_v)",
    "w=max(r_v) where x > 0",
]


@dataclass(frozen=True, slots=True)
class JoinCase:
    """A join. ``right``: None: the left log is both sides. ``where``: of the left, ``right_where``: of the right.

    ``emit``: None: what is without the option. ``calls``: aggregates, as texts. ``kind``: the type of the clock.
    ``in_order``: whether the rows of one log are ordered where event time would take them as they arrive.
    ``cuts``: clock values before which new nights begin, ascending.
    """

    left: pa.Table
    right: pa.Table | None
    window: str
    how: str
    keyed: bool
    kind: pa.DataType
    strict: bool = False
    match: str | None = None
    where: str | None = None
    right_where: str | None = None
    emit: str | None = None
    calls: tuple[str, ...] = ()
    in_order: bool = False
    cuts: tuple[Any, ...] = ()

    @property
    def request(self) -> str:
        """What stands behind the name, or behind the path."""
        on = ("on k" if self.right is None else "on k=kk") if self.keyed else ""
        by = "by t=tt" if self.right is not None else "" if self.by_arrival else "by t"
        where = f"where ({self.right_where})" if self.right_where else ""
        return " ".join(part for part in (on, by, self.how, "strict" if self.strict else "", where) if part)

    @property
    def by_arrival(self) -> bool:
        """Whether rows stand as they arrive: those of event time in one log."""
        return self.right is None and self.window.startswith("timeInterval") and not self.in_order

    def lots(
        self, at_end: str = "flush", nights: Any = None, late: Any = "reject"
    ) -> tuple[joins.Sides, list[joins.Lot]]:
        """What the reference says, of some nights, or of all as one."""
        one_log = self.right is None
        columns = self.left.column_names if self.right is None else self.right.column_names
        join = joins.Join(
            name="r", how=self.how, strict=self.strict, kind=self.kind, at_end=at_end,
            by_arrival=self.by_arrival,
            keys=[("k", "k" if one_log else "kk")] if self.keyed else [], orders=[("t", "t" if one_log else "tt")],
            left_where=condition_of(self.where), right_where=condition_of(self.right_where),
            match=condition_of(self.match), left_columns=self.left.column_names, right_columns=columns,
        )  # fmt: skip
        tables = [(self.left, self.right)] if nights is None else nights
        rows = [(list(read(a).values()), None if b is None else list(read(b).values())) for a, b in tables]
        both = joins.sides(rows, join, late)
        emit = self.emit or ("aggregates" if self.calls else "entered")
        if " join " not in self.window and self.window.partition("(")[0] not in ("around", "at"):
            both, panes = _panes(both, self.window, at_end)
            return both, joins.one_window(both, panes)
        return both, lots_of(both, self.window, emit)

    def expected(self, at_end: str = "flush", nights: Any = None, late: Any = "reject") -> list[tuple[Any, ...]]:
        """The rows of the result in the order in which they come out, each as `found` has it."""
        both, lots = self.lots(at_end, nights, late)
        return self.told(both.join, lots)

    def told(self, join: joins.Join, lots: Sequence[joins.Lot]) -> list[tuple[Any, ...]]:
        """The rows of the result that come out as these lots."""
        rows: list[tuple[Any, ...]] = []
        for lot in lots:
            told = (*lot.key, lot.number, lot.closed_by, lot.at, lot.start, lot.end)
            if self.calls:
                union = join.how == "union"
                pairs = [join.row(pair) for pair in lot.pairs if union or None not in pair]
                rows.append((*told, *aggregates_of(pairs, list(self.calls)).values()))
                continue
            for place, pair in enumerate(lot.pairs):
                row = join.row(pair)
                shown = (row["id"], row["r_id"], *([row["_side"]] if join.how == "union" else ()))
                rows.append((*told, *shown, *([lot.tags[place]] if lot.tags else ())))
        return rows

    def found(self, result: pa.Table) -> list[tuple[Any, ...]]:
        """The rows of a result of the product in the order in which they come out; instants are exact seconds."""
        rows = [row for row in _plain(result).to_pylist() if row["_mark"] != "only"]
        rows.sort(key=lambda row: emission(row, self.keyed))
        names = [call.partition("=")[0] for call in self.calls] or ["id", "r_id"]
        names += ["_side"] if self.how == "union" and not self.calls else []
        names += ["r_offset"] if "r_offset" in result.column_names and not self.calls else []
        told = [*(["k"] if self.keyed else []), "window", "closed_by", "_at", "window_start", "window_end"]
        types = {name: result.schema.field(name).type for name in ("_at", "window_start", "window_end")}

        def value(row: Row, name: str) -> Any:
            if name in types and row[name] is not None:
                return Fraction(row[name]) * seconds_per_unit(types[name])
            return Fraction(row[name]) if name == "r_offset" else row[name]

        return [tuple(value(row, name) for name in [*told, *names]) for row in rows]


def emission(row: Row, is_keyed: bool) -> tuple[Any, ...]:
    """The place of a row in the order in which lots come out; the end of the data is behind all rows."""
    at, pos = row["_at"], row["_pos"]
    ties = [row[name] or 0 for name in sorted(row) if name.startswith("_tie")]
    key = (row["k"] is None, row["k"] or 0) if is_keyed else ()
    return at is None and pos is None, at or 0, row.get("_turn") or 0, pos or 0, *ties, row["window"], key


def _plain(result: pa.Table) -> pa.Table:
    """A table with its instants as integers."""
    fields = [(f.name, pa.int64() if pa.types.is_temporal(f.type) else f.type) for f in result.schema]
    return result.cast(pa.schema(fields))


def _panes(both: joins.Sides, window: str, at_end: str) -> tuple[joins.Sides, list[Pane]]:
    """The panes of a window of one input over both sides, by its own reference; bounds are exact seconds.

    Both sides come back without the rows that come too late by the watermark.
    """
    join, rows, kind = both.join, joins.merged_rows(both, window.startswith("timeInterval")), both.join.kind
    key, order = [name for name, _ in join.keys], [name for name, _ in join.orders]
    amounts = [Fraction(text) for text in re.findall(r"(\d+)\)", window.partition(", discardAge")[0])]
    end: Any = "flush" if at_end == "flush" else "drop"
    if window.startswith("timeInterval"):
        duration, period = amounts[0], amounts[-1]
        age = Fraction(2 if "discardAge" in window else 0)
        given = {"key": key, "order": () if join.by_arrival else order, "event_time": "t", "kind": kind, "at_end": end}
        panes, late, _ = intervals(rows, duration, period, age, Fraction(0), **given)
        return joins.without_late(both, late), [_in_seconds(pane, kind) for pane in panes]
    policies = {
        "time": lambda n: Time(n, kind), "count": lambda n: Count(int(n)), "gap": lambda n: Gap("t", n, kind),
        "delta": lambda n: Delta("t", n, kind),
    }  # fmt: skip
    if window.startswith("punct"):
        made = [Punct(lambda row: row["x"] == 1)]
    else:
        made = [policies[text.partition("(")[0]](amounts[at]) for at, text in enumerate(window.split(" or "))]
    clock = both.stands / seconds_per_unit(kind) if rows else None
    own = tumbling(rows, *made, key=key, order=order, at_end=end, clock=clock)
    return both, [_in_seconds(pane, kind) for pane in own.panes]


def _in_seconds(pane: Pane, kind: pa.DataType) -> Pane:
    unit = seconds_per_unit(kind)
    at = pane.at and (Fraction(pane.at[0]) * unit,)
    return replace(pane, at=at, start=Fraction(pane.start) * unit, end=Fraction(pane.end) * unit)


# --- drawing ------------------------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn, kind: pa.DataType, names: Sequence[str], keys: Sequence[Any], most: int = 12) -> pa.Table:
    """A log. ``names``: of its key, its clock and its value."""
    size = draw(st.integers(0, most))
    units = 1000 if kind == pa.timestamp("ms") else 1
    steps = (
        [-2, 0, 1, 1.25, 2, 2.5, 3, 4, 5, 5.5, 7, 9, None, math.nan]
        if pa.types.is_floating(kind)
        else [-2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, None]
    )

    def column(values: Sequence[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

    clock = [value and value * units for value in column(steps)]
    clock = draw(st.sampled_from([clock, sorted(clock, key=lambda value: (value is None, value))]))
    columns = {
        names[0]: pa.array(column(keys), pa.int64()),
        names[1]: pa.array(clock, pa.float64() if pa.types.is_floating(kind) else pa.int64()),
        names[2]: pa.array(column([None, 0, 1, 1, 2, 3]), pa.int64()),
        "m": pa.array(column([0, 1, 2, 3, 5]), pa.int64()),
        "id": pa.array(range(size), pa.int64()),
    }
    return pa.table(columns).set_column(1, names[1], columns[names[1]].cast(kind))


@st.composite
def windows(draw: st.DrawFn) -> tuple[str, list[str], list[str | None]]:
    """A window with the HOW and the outputs that it may have."""
    what = draw(st.sampled_from(["around", "around", "at", "sliding", "batched", "one", "interval"]))
    all_how = ["inner", "left", "right", "full", "semi", "anti"]
    if what == "around":
        before, after = draw(st.tuples(st.integers(-2, 4), st.integers(-2, 4)).filter(lambda two: sum(two) >= 0))
        prevailing = draw(st.booleans())
        return (
            f"around({before}, {after}{', prevailing' if prevailing else ''})",
            ["inner", "left", "semi", "anti"] if prevailing else all_how,
            [None, "aggregates"],
        )
    if what == "at":
        offsets = draw(st.lists(st.integers(-3, 4), min_size=1, max_size=3, unique=True))
        within = draw(st.sampled_from(["", "", " within 0", " within 2"]))
        return f"at({', '.join(map(str, offsets))}){within}", ["inner", "left"], [None]
    if what == "sliding":
        one, other = draw(st.sampled_from(SLIDING)), draw(st.sampled_from(SLIDING))
        emit = draw(st.sampled_from(["entered", "entered", "left", "rows", "aggregates"]))
        return f"sliding, {one} join {other}", all_how if emit == "entered" else ["inner"], [emit]
    if what == "batched":
        one, other = draw(st.sampled_from(BATCHED)), draw(st.sampled_from(BATCHED))
        return f"{one} join {other}", ["inner"], [draw(st.sampled_from(["entered", "left", "rows", "aggregates"]))]
    found = draw(st.sampled_from(ONE_WINDOW if what == "one" else INTERVALS))
    return found, [*all_how, "union"], [None, "aggregates"]


@st.composite
def join_cases(draw: st.DrawFn, one_log: bool | None = None, most: int = 12) -> JoinCase:
    """Joins with small logs, rows of equal times, null keys and null orders."""
    window, hows, emits = draw(windows())
    kind = draw(st.sampled_from(KINDS))
    how, emit = draw(st.sampled_from(hows)), draw(st.sampled_from(emits))
    alone = draw(st.booleans()) if one_log is None else one_log
    alone = alone and how != "union"
    keyed = draw(st.booleans())
    keys = draw(st.sampled_from([[0], [0, 1, 2], [0, 1, None]]))
    left = draw(logs(kind, ("k", "t", "x"), keys, most))
    right = None if alone else draw(logs(kind, ("kk", "tt", "v"), keys, most))
    value = "x" if alone else "v"
    can_match = how != "union"
    match = draw(
        st.sampled_from([None, None, f"x < r_{value}", "id <> r_id", f"x = 1 or r_{value} is null", "m = r_m"])
    )
    calls: tuple[str, ...] = ()
    if emit == "aggregates":
        how = how if how in ("inner", "left", "union") and (how != "left" or window.startswith("around")) else "inner"
        some = [call for call in CALLS if how != "union" or call[0] in "ncsfl"]
        drawn = draw(st.lists(st.sampled_from(some), min_size=1, max_size=3, unique=True))
        calls = tuple(call.replace("r_v", f"r_{value}") for call in drawn)
    return JoinCase(
        left, right, window, how, keyed, kind,
        strict=draw(st.booleans()) and not alone,
        match=match if can_match else None,
        where=draw(st.sampled_from([None, None, None, "m < 3"])),
        right_where=draw(st.sampled_from([None, None, None, f"{value} > 0"])),
        emit=emit if " join " in window and not calls else None,
        calls=calls,
        in_order=alone and draw(st.booleans()),
        cuts=tuple(sorted(draw(st.sets(st.sampled_from([1, 3, 5, 8]), max_size=2)))),
    )  # fmt: skip
