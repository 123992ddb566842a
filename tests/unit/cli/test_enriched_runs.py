"""Runs with enrich tables: units against one run, what is recorded, and what is said of mistakes."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
from pathlib import Path
from typing import Any

import pytest

from references.enrichment import matches
from support.day_results import day, records, span
from support.in_process import done, wincli_here
from support.processes import manifest, write
from wincli.windowing.engine import enrich

EMITTED = ("--order-by", "ts", "--emit", "rows", "--plain", "--output-format", "csv")
ROWS = ("--window", "count(1)", *EMITTED)


def rows_of(folder: Path) -> list[dict[str, str]]:
    return [row for part in sorted(folder.rglob("part-*.csv")) for row in csv.DictReader(part.read_text().splitlines())]


def values(folder: Path, *names: str) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in names) for row in rows_of(folder)]


def day_logs(folder: Path, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Trades and prices of three days below ``folder``; return all of them in order."""
    chance = random.Random(seed)

    def made(kind: str, count: int, name: str) -> list[dict[str, Any]]:
        found = []
        for n in (1, 2, 3):
            hours = sorted(chance.randrange(24) for _ in range(count))
            rows = [(f"{day(n)}T{hour:02}:00:00", chance.choice("abc"), chance.randrange(100)) for hour in hours]
            lines = [f"{at},{symbol},{value}" for at, symbol, value in rows]
            write(folder / kind / f"dt={day(n)}", a__csv="\n".join([f"ts,symbol,{name}", *lines, ""]))
            found += [{"ts": at, "symbol": symbol, name: value} for at, symbol, value in rows]
        return found

    return made("trades", 12, "items"), made("prices", 4, "bid")


@pytest.mark.parametrize(("seed", "small"), [(0, enrich.SMALL_TABLE), (1, -1)], ids=["broadcast", "exchange"])
def test_units_of_a_range_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, small: int) -> None:
    monkeypatch.setattr(enrich, "SMALL_TABLE", small)
    trades, prices = day_logs(tmp_path, seed)
    text = "p=prices{} on symbol asof ts take bid"
    assert done(tmp_path, "run", "-q", *ROWS, "--enrich", text.format(""), "trades", "one").err == ""
    daily = (*ROWS, "--enrich", text.format("/dt={date}"), "--state", "st", *span(1, 3), "trades", "units")
    done(tmp_path, "run", *daily)
    found = values(tmp_path / "units", "ts", "symbol", "p_bid")
    assert found == values(tmp_path / "one", "ts", "symbol", "p_bid")
    expected = matches(trades, prices, [("symbol", "symbol")], ("ts", "ts"))
    assert [row[2] for row in found] == ["" if at is None else str(prices[at]["bid"]) for at in expected]
    assert "nothing to do" in done(tmp_path, "run", *daily).err


def test_runs_on_a_state_with_a_path_each_carry_the_last_row_of_each_key(tmp_path: Path) -> None:
    write(tmp_path, t1__csv="ts,k\n1,a\n2,b\n", t2__csv="ts,k\n3,a\n6,b\n6,a\n")
    write(tmp_path, p1__csv="ts,k,v\n0,a,1\n2,a,2\n2,b,3\n", p2__csv="ts,k,v\n5,b,4\n")
    for night in "12":
        table = f"p=p{night}.csv on k asof ts take v"
        done(tmp_path, "run", *ROWS, "--state", "st", "--enrich", table, f"t{night}.csv", f"out{night}")
    assert [values(tmp_path / f"out{n}", "p_v") for n in "12"] == [[("1",), ("3",)], [("2",), ("4",), ("2",)]]
    for told in (records(tmp_path / "st")["run-000002"], manifest(tmp_path / "out2")):
        assert [Path(file["path"]).name for file in told["enrich"]["p"]] == ["p2.csv"]
    write(tmp_path, t3__csv="ts,k\n9,a\n")
    strict = ("--state", "st", "--enrich", "p=p2.csv on k asof ts strict take v", "t3.csv", "out3")
    ran = done(tmp_path, "run", *ROWS, *strict, code=2)
    assert "its enrich is p on k asof ts take v, not p on k asof ts strict take v" in ran.err


@pytest.mark.parametrize("small", [enrich.SMALL_TABLE, -1], ids=["broadcast", "exchange"])
@pytest.mark.parametrize("direction", ["forward", "nearest"])
def test_what_looks_ahead_carries_nothing_and_units_over_one_table_are_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str, small: int
) -> None:
    """A night looks at its own PATH alone: with a table that is whole, nights are one run, also with a late row."""
    monkeypatch.setattr(enrich, "SMALL_TABLE", small)
    trades, prices = day_logs(tmp_path, 3)
    late = {"ts": f"{day(1)}T05:30:00", "symbol": "a", "items": 1}
    with (tmp_path / "trades" / f"dt={day(3)}" / "a.csv").open("a") as file:
        file.write(f"{late['ts']},a,1\n")
    text = f"p=prices on symbol asof {direction} ts within 12h take bid"
    redo = (*ROWS, "--enrich", text, "--state", "st", "--late", "redo")
    for n in (1, 2, 3):
        done(tmp_path, "run", *redo, f"trades/dt={day(n)}", f"out{n}")
    found = {row for n in (1, 2, 3) for row in values(tmp_path / f"out{n}", "ts", "symbol", "items", "p_bid")}
    rows = [*trades, late]
    as_times = [[{**row, "ts": dt.datetime.fromisoformat(row["ts"])} for row in log] for log in (rows, prices)]
    expected = matches(*as_times, [("symbol", "symbol")], ("ts", "ts"), dt.timedelta(hours=12), direction=direction)
    bids = ["" if at is None else str(prices[at]["bid"]) for at in expected]
    told = {(row["ts"], row["symbol"], str(row["items"]), bid) for row, bid in zip(rows, bids, strict=True)}
    assert {(ts.replace(" ", "T").removesuffix(".000000"), *rest) for ts, *rest in found} == told
    assert not any("table-p-" in file.name for file in (tmp_path / "st").rglob("*"))


def test_late_rows_get_what_the_table_of_their_unit_has(tmp_path: Path) -> None:
    """Night 2 brings a row of night 1, which runs again with it and with its own table."""
    write(tmp_path, t1__csv="ts,k\n10,a\n20,a\n", t2__csv="ts,k\n15,a\n30,a\n")
    write(tmp_path, p1__csv="ts,k,v\n1,a,1\n14,a,2\n16,a,3\n", p2__csv="ts,k,v\n29,a,4\n")
    for night in "12":
        state = ("--state", "st", "--late", "redo", "--enrich", f"p=p{night}.csv on k asof ts take v")
        ran = done(tmp_path, "run", *ROWS, "-k", "p_v", *state, f"t{night}.csv", f"out{night}")
    assert "belongs to units before it" in ran.err
    found = [values(tmp_path / name, "ts", "p_v") for name in ("out1", "out2")]
    assert found == [[("10", "1"), ("15", "2"), ("20", "3")], [("30", "4")]]


def test_a_run_or_a_unit_is_repeated_if_its_table_has_changed_and_only_then(tmp_path: Path) -> None:
    write(tmp_path, t__csv="ts,k\n1,a\n", p__csv="k,v\na,1\n")
    command = ("run", "-w", "count(1)", "--order-by", "ts", "--enrich", "p=p.csv on k", "t.csv", "one")
    for code, nothing in ((0, False), (0, True)):
        assert ("nothing to do" in done(tmp_path, *command, code=code).err) == nothing
    write(tmp_path, p__csv="k,v\na,22\n")
    assert "nothing to do" not in done(tmp_path, *command, code=2).err
    for n in (1, 2):
        write(tmp_path / "t", **{f"{day(n)}__csv": f"ts,k\n{day(n)}T01:00:00,a\n"})
        write(tmp_path / "p", **{f"{day(n)}__csv": "k,v\na,1\n"})
    command = ("run", *ROWS, *span(1, 2), "--enrich", "p=p/{date}.csv on k", "t/{date}.csv", "out")
    done(tmp_path, *command)
    write(tmp_path / "p", **{f"{day(2)}__csv": "k,v\na,333\n"})
    assert "its input is not what it was" in done(tmp_path, *command).err
    assert values(tmp_path / "out", "p_v") == [("1",), ("333",)]
    (tmp_path / f"p/{day(2)}.csv").unlink()
    said = f"t/{{date}}.csv has files for {day(2)}, and the enrich table p/{day(2)}.csv has none"
    assert said in done(tmp_path, *command, code=3).err


TABLE = "ts,k,v,day\n0,a,1,2026-11-01\n0,a,2,2026-11-01\n"
MISTAKES = {
    "p=pp.csv on k": "--enrich p: there is no file or folder pp.csv; did you mean p.csv?",
    "p=p.csv on k": "--enrich p: key 'a' is there twice: in p.csv (row 2) and in p.csv (row 3); ",
    "p=p.csv on kk": "--enrich p: the input has no column 'kk'; did you mean 'k'?",
    "p=p.csv on k=kk": "--enrich p: its table has no column 'kk'; did you mean 'k'?",
    "p=p.csv on ts=k": "--enrich p: 'ts' is int64 and 'k' of its table is string: these do not compare; ",
    "p=p.csv on k asof k": "--enrich p: the order 'k' is compared as string; an as-of order is a time or",
    "p=p.csv on k asof ts=day": "--enrich p: 'ts' is int64 and 'day' of its table is date32[day]: these do not",
    "p=p.csv on k asof ts take w": "--enrich p: its table has no column 'w'; known: ts, k, v, day",
    "p=p.csv on k asof ts take v as k": "--enrich p: the rows have a column 'k' already; take it under another",
    "p=p.csv on": "expected a column, found the end",
    "p=bad.csv on k asof ts": "--enrich p: row 3 of bad.csv cannot be read: ",
}


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    write(tmp_path, t__csv="ts,k\n1,a\n", p__csv=TABLE, bad__csv="ts,k,v\n0,a,1\n0,a\n")
    for text, says in MISTAKES.items():
        ran = wincli_here("run", *ROWS, "--enrich", text, "t.csv", "out", cwd=tmp_path)
        assert (ran.code in (2, 3, 4), says in ran.err, "Traceback" in ran.err) == (True, True, False), (text, ran.err)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("window", ["time(60)", "delta(p_v, 60)"])
def test_advice_on_a_missing_clock_needs_no_table(tmp_path: Path, window: str) -> None:
    write(tmp_path, t__csv="n,k\nx,a\n", p__csv="k,v\na,2026-13-01 10:00\n")
    ran = wincli_here("run", "-w", window, "--enrich", "p=p.csv on k", "t.csv", "out", cwd=tmp_path)
    assert ran.code not in (0, 1)
    assert "unexpected" not in ran.err


def test_a_job_file_names_enrichments(tmp_path: Path) -> None:
    write(tmp_path, t__csv="ts,k\n1,a\n", p__csv=TABLE)
    job = {"input": "t.csv", "output": "out", "window": "count(1)", "order_by": "ts", "emit": "rows"}
    job |= {"output_format": "csv", "enrich": {"p": "p.csv on k asof ts take v", "q": "p.csv on k, p_v=v take ts"}}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    assert done(tmp_path, "run", "-q", "job.yaml").err == ""
    assert values(tmp_path / "out", "p_v", "q_ts") == [("2", "0")]
    assert not list((tmp_path / "out").glob("_tables"))
