"""Random joins that run night after night by the command line, and what the reference says of all nights together.

Rows of a night are those between two times, but for some that come a night or two too late; those of event time in one
log are there in order of arrival. Runs are plain, or a range of days; then a day may be run again, or have other files
at first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from references import joins
from references.tumbling import is_nan
from support.in_process import done
from support.processes import manifest, table
from support.random_joins import JoinCase, join_cases

Found = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Nights:
    """A join over nights. ``left``, ``right``: the night of each row of both logs, ascending where nothing is late.

    ``late``: what becomes of late rows. ``at_end``: of the last night; others hold.
    ``days``: whether the nights are days of a range. Then ``again`` is a day that is run once more when all are done,
    and ``changed`` a day whose files have only every second row until then; None: none is.
    """

    case: JoinCase
    left: tuple[int, ...]
    right: tuple[int, ...]
    count: int
    late: str = "reject"
    at_end: str = "flush"
    days: bool = False
    again: int | None = None
    changed: int | None = None

    @property
    def rows(self) -> list[tuple[pa.Table, pa.Table | None]]:
        """The rows of both inputs of each night."""
        case = self.case

        def of(log: pa.Table, nights: Sequence[int], night: int) -> pa.Table:
            return log.filter(pa.array([own == night for own in nights], pa.bool_()))

        return [
            (of(case.left, self.left, night), None if case.right is None else of(case.right, self.right, night))
            for night in range(self.count)
        ]

    @property
    def is_corrected(self) -> bool:
        """Whether a night may have been run again, after which later ones keep the numbers of their windows."""
        return self.late == "redo" or self.changed is not None

    @property
    def options(self) -> list[str]:
        case = self.case
        args = ["--window", case.window, *(part for call in case.calls for part in ("--agg", call))]
        for name, value in (("match", case.match), ("where", case.where), ("emit", case.emit)):
            args += [f"--{name}", value] if value else []
        return args + (["--event-time", "t"] if case.by_arrival else [])

    def run(self, folder: Path) -> list[tuple[Found, dict[str, Any]]]:
        """Run all nights; return of each its rows in the order in which they come out, and its account."""
        (self._run_days if self.days else self._run_plain)(folder)
        outs = [folder / "out" / name_of(night) for night in range(self.count)]
        return [(self.case.found(table(out)), manifest(out)["counts"]) for out in outs]

    def _run_plain(self, folder: Path) -> None:
        for night, rows in enumerate(self.rows):
            self._put(folder, night, rows)
            end = self.at_end if night + 1 == self.count else "hold"
            self._call(folder, name_of(night), "--at-end", end)

    def _run_days(self, folder: Path) -> None:
        nights, span = self.rows, ("--start", name_of(0), "--end", name_of(self.count))
        for night, rows in enumerate(nights):
            self._put(folder, night, rows, half=night == self.changed)
        self._call(folder, "{date}", "--at-end", "hold", *span)
        if self.changed is not None:
            self._put(folder, self.changed, nights[self.changed])
            self._call(folder, "{date}", "--at-end", "hold", *span)
        if self.again is not None:
            redone = ("--start", name_of(self.again), "--end", name_of(self.again + 1), "--redo")
            self._call(folder, "{date}", "--at-end", "hold", *redone)
        if self.at_end != "hold":
            redo = ["--redo"] if self.at_end == "drop" else []
            last = ("--start", name_of(self.count - 1), "--end", name_of(self.count), *redo)
            self._call(folder, "{date}", "--at-end", self.at_end, *last)

    def _put(self, folder: Path, night: int, rows: tuple[pa.Table, pa.Table | None], half: bool = False) -> None:
        for side, log in zip("lr", rows, strict=True):
            if log is not None:
                (folder / side).mkdir(exist_ok=True)
                path = folder / side / f"{name_of(night)}.parquet"
                pq.write_table(log.take(pa.array(range(0, len(log), 2), pa.int64())) if half else log, path)

    def _call(self, folder: Path, name: str, *more: str) -> None:
        path = "r" if self.case.right is None else f"r=r/{name}.parquet"
        args = [*self.options, "--join", f"{path} {self.case.request}", "--state", "state", "--late", self.late, *more]
        done(folder, "run", *args, f"l/{name}.parquet", f"out/{name}")

    # --- by the reference

    def check(self, folder: Path) -> None:
        """Run all nights; raise `AssertionError` where rows or accounts are not those of the reference."""
        found, nights = self.run(folder), self.rows
        for night in range(self.count) if not self.is_corrected else [self.count - 1]:
            is_last = night + 1 == self.count
            end = self.at_end if is_last else "hold"
            both, lots = self.case.lots(end, nights[: night + 1], self.late)
            expected, rows = self.case.told(both.join, lots), [row for own, _ in found[: night + 1] for row in own]
            if self.is_corrected:
                expected, rows = (sorted(map(self._without_number, one), key=repr) for one in (expected, rows))
            assert rows == expected
            self._check_account([counts for _, counts in found[: night + 1]], both, lots, end, nights[: night + 1])

    def _without_number(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        at = int(self.case.keyed)
        return row[:at] + row[at + 1 :]

    def _check_account(
        self, counts: list[dict[str, Any]], both: joins.Sides, lots: list[joins.Lot], end: str, nights: Any
    ) -> None:
        total = {name: sum(one[name] for one in counts) for name in ("rows_in", "windowed", "filtered")}
        rejected, held = Counter[str](), counts[-1]["held"]
        for one in counts:
            rejected.update(one["rejected"])
        dropped = counts[-1]["dropped_at_end"]
        shown = {event.pos for lot in lots for pair in lot.pairs for event in pair if event is not None}
        assert total["rows_in"] == sum(len(a) + (0 if b is None else len(b)) for a, b in nights)
        assert rejected == Counter(both.rejected.values())
        assert total["windowed"] == len(shown)
        assert total["rows_in"] == total["windowed"] + total["filtered"] + rejected.total() + dropped + held
        if end == "flush":
            assert (held, dropped) == (0, 0)
            return
        _, every = self.case.lots("flush", nights, self.late)
        others = {event.pos for lot in every for pair in lot.pairs for event in pair if event is not None} - shown
        if end == "drop":
            assert (held, dropped) == (0, len(others))
        else:
            assert held >= len(others), "a row that is still to come out is not held"
            assert dropped == 0


def name_of(night: int) -> str:
    return f"2026-01-0{night + 1}"


@st.composite
def nights_of_joins(draw: st.DrawFn, days: bool | None = None, one_log: bool | None = None) -> Nights:
    """A random join over two to four nights."""
    case = draw(join_cases(one_log))
    cuts = sorted(draw(st.sets(st.sampled_from([1, 3, 5, 8]), min_size=1, max_size=3)))
    units = 1000 if case.kind == pa.timestamp("ms") else 1
    delays = draw(st.sampled_from([[0], [0], [0, 0, 0, 0, 0, 1, 2]]))

    def nights(log: pa.Table | None, clock: str) -> tuple[int, ...]:
        if log is None:
            return ()
        if case.by_arrival:
            return tuple(sorted(draw(st.lists(st.integers(0, len(cuts)), min_size=len(log), max_size=len(log)))))
        dtype = pa.int64() if pa.types.is_temporal(case.kind) else case.kind
        found = []
        for at in log[clock].cast(dtype).to_pylist():
            is_nowhere = at is None or is_nan(at)
            own = draw(st.integers(0, len(cuts))) if is_nowhere else sum(at >= cut * units for cut in cuts)
            found.append(min(own + draw(st.sampled_from(delays)), len(cuts)))
        return tuple(found)

    left, right = nights(case.left, "t"), nights(case.right, "tt")
    is_range = draw(st.booleans()) if days is None else days
    night = st.one_of(st.none(), st.integers(0, len(cuts)))
    return Nights(
        case, left, right, len(cuts) + 1,
        late=draw(st.sampled_from(["reject", "redo"])),
        at_end=draw(st.sampled_from(["flush", "flush", "hold", "drop"])),
        days=is_range,
        again=draw(night) if is_range else None,
        changed=draw(night) if is_range else None,
    )  # fmt: skip
