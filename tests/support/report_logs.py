"""Logs and runs that tests of reports look at."""

from __future__ import annotations

from pathlib import Path

from support.in_process import wincli_here

RANGE = ("--start", "2026-11-01", "--end", "2026-11-06")
DAYS = ("--window", "gap(ts, 2h)", "--key", "user", "--schema", "ts:timestamp", "--late", "reject", "log/{date}.csv")


def write_log(path: Path) -> None:
    """Write a log of users who come back at odd times, with a row that has no time and one that has no user."""
    lines = ["ts,user,shop,amount"]
    for n in range(60):
        minute = (n * 37 + n * n * 11) % 1440
        user = ("ann", "bob", "cy")[(n * n + n // 5) % 3]
        lines.append(f"2026-11-01T{minute // 60:02}:{minute % 60:02}:{n % 60:02},{user},s{n % 4},{n % 9}")
    lines += [",ann,s1,1", "2026-11-01T11:00:00,,s1,1"]
    path.write_text("\n".join(lines) + "\n")


def write_days(folder: Path) -> None:
    """Write a log for each of four days; the third of November is missing, and the fourth has rows of the second."""
    folder.mkdir()
    for day in (1, 2, 4, 5):
        lines = ["ts,user"]
        for n in range(20 + 3 * day):
            lines.append(f"2026-11-{day:02}T{n % 24:02}:{n:02}:00,u{n % 5}")
        lines += ["2026-11-02T08:00:00,u1", ",u1"] if day == 4 else []
        (folder / f"2026-11-{day:02}.csv").write_text("\n".join(lines) + "\n")


def run(folder: Path, *words: str) -> None:
    """Run ``wincli run`` to its end."""
    ran = wincli_here("run", *words, cwd=folder)
    assert ran.code == 0, ran.err
