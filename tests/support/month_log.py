"""A log of days with sessions over midnight, backfilled with the whole command, and what each day left on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.day_results import as_one, day, in_order, records, total
from support.in_process import wincli_here
from support.processes import Ran, manifest, tree, write

Row = tuple[str, str, int]
SESSIONS = ("-w", "gap(ts, 2h)", "-k", "user", "--order-by", "ts", "-a", "n=count()", "-a", "total=sum(x)")
DAYS = 12
ALL = range(1, DAYS + 1)

# One day: `a` ends a session within the day, and one that the next morning shows to have ended; `b` goes over midnight.
#
#            0h        8h 9h        12h              20h     23h
#     a      |         [8  9]        |                [20     |      comes out when a comes back at 8h
#     b      |..1]                   [12]                    [23 ..  and the next night


def day_of(n: int) -> list[Row]:
    return [
        *[("01:00", "b", 7), ("08:00", "a", 1), ("09:00", "a", 2), ("12:00", "b", 9), ("20:00", "a", 3)],
        ("23:00", "b", n),
    ]


def changed(at: str) -> Callable[[list[Row]], list[Row]]:
    """The rows of a day, one of them with another value."""
    return lambda lines: [(time, user, x + 50 * (time == at)) for time, user, x in lines]


def moved(at: str, to: str) -> Callable[[list[Row]], list[Row]]:
    return lambda lines: [(to if time == at else time, user, x) for time, user, x in lines]


def added(*more: Row) -> Callable[[list[Row]], list[Row]]:
    return lambda lines: [*lines, *more]


@dataclass(frozen=True)
class Log:
    """A folder with a log of days, and the command that windows it onto a state."""

    folder: Path

    def write(self, n: int, change: Callable[[list[Row]], list[Row]] = lambda lines: lines) -> None:
        lines = [f"{day(n)}T{time}:00,{user},{x}" for time, user, x in change(day_of(n))]
        write(self.folder / "log" / f"dt={day(n)}", a__csv="\n".join(["ts,user,x", *lines, ""]))

    def run(self, *args: str, code: int = 0, command: Sequence[str] = SESSIONS, output: str = "out") -> Ran:
        ran = wincli_here("run", *command, "log", output, "--state", "st", *args, cwd=self.folder)
        assert ran.code == code, ran.err
        return ran

    def fails(self, code: int, text: str, *args: str, command: Sequence[str] = SESSIONS) -> None:
        """Run what must end with an exit code and a text, and leave no trace but the error in the state."""
        before = {path: file for path, file in tree(self.folder).items() if not path.endswith(".last-error.json")}
        assert self.run(*args, code=code, command=command).err.splitlines()[-1] == f"wincli: error: {text}"
        after = tree(self.folder)
        after.pop("st/.last-error.json", None)
        assert after == before

    @property
    def state(self) -> Path:
        return self.folder / "st"

    def outputs(self) -> list[Path]:
        return sorted(self.folder.glob("out/*"))

    def is_that_of_one_run(self, but: Sequence[str] = ()) -> bool:
        """Whether the days together are one run over all that the log holds now; ``but``: columns that may differ."""
        more = ("log/*", "one", "--state", "st-one", "--mode", "overwrite", "-q")
        shutil.rmtree(self.folder / "st-one", ignore_errors=True)
        assert wincli_here("run", *SESSIONS, *more, cwd=self.folder).code == 0
        found = as_one(in_order(self.outputs()), list(records(self.state).values())).drop_columns([*but])
        counts = {**manifest(self.folder / "one")["counts"]}
        return total(self.state) == counts and bool(found.equals(in_order([self.folder / "one"]).drop_columns([*but])))


@dataclass(frozen=True)
class Seen:
    """What the days of a log were at one moment: the bytes, times and places on the disk of all that they wrote."""

    outputs: dict[str, Any]
    states: dict[str, Any]

    @classmethod
    def of(cls, log: Log) -> Seen:
        return cls({path.name[3:]: _seen(path) for path in log.outputs()}, {u: _seen(log.state / u) for u in ALL_DAYS})

    def touched(self, log: Log) -> list[int]:
        """The days whose output or state is no longer what it was, which are the same days."""
        now = Seen.of(log)
        outputs = [n for n in ALL if self.outputs.get(day(n)) != now.outputs.get(day(n))]
        assert [n for n in ALL if self.states[day(n)] != now.states[day(n)]] == outputs
        return outputs


ALL_DAYS = [day(n) for n in ALL]


def _seen(folder: Path) -> dict[str, Any]:
    paths = [folder, *sorted(folder.rglob("*"))] if folder.exists() else []
    stats = [(path, path.stat()) for path in paths]
    return {str(path): (stat.st_ino, stat.st_mtime_ns, path.is_file() and path.read_bytes()) for path, stat in stats}


def corrections(ran: Ran) -> list[str]:
    return [note for note in ran.notes if note.startswith("the correction reached")]
