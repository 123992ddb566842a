"""Runs with enrich tables: units against one run, what is recorded, and what is said of mistakes."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from references.enrichment import matches
from support.in_process import wincli_here
from wincli.windowing.engine import enrich

DAYS = ["2026-11-01", "2026-11-02", "2026-11-03"]
ROWS = ("--window", "count(1)", "--order-by", "ts", "--emit", "rows", "--plain", "--output-format", "csv", "-q")


def log(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def rows_of(folder: Path) -> list[dict[str, str]]:
    return [row for part in sorted(folder.rglob("part-*.csv")) for row in csv.DictReader(part.read_text().splitlines())]


def day_logs(folder: Path, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Trades and prices of each day below ``folder``; return all of them in order."""
    chance = random.Random(seed)

    def made(day: str, count: int, name: str) -> list[dict[str, Any]]:
        hours = sorted(chance.randrange(24) for _ in range(count))
        return [
            {"ts": f"{day}T{hour:02}:00:00", "symbol": chance.choice("abc"), name: chance.randrange(100)}
            for hour in hours
        ]

    trades = {day: made(day, 12, "items") for day in DAYS}
    prices = {day: made(day, 4, "bid") for day in DAYS}
    for day in DAYS:
        log(folder / f"trades/{day}.csv", trades[day])
        log(folder / f"prices/{day}.csv", prices[day])
    return [row for day in DAYS for row in trades[day]], [row for day in DAYS for row in prices[day]]


@pytest.mark.parametrize(("seed", "small"), [(0, enrich.SMALL_TABLE), (1, -1)], ids=["broadcast", "exchange"])
def test_units_of_a_range_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, small: int) -> None:
    monkeypatch.setattr(enrich, "SMALL_TABLE", small)
    trades, prices = day_logs(tmp_path, seed)
    text = "p=prices/{} on symbol asof ts take bid"
    ran = wincli_here("run", *ROWS, "--enrich", text.format(""), "trades", "one", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    dates = ("--state", "st", "--start", DAYS[0], "--end", "2026-11-04")
    daily = ("--enrich", text.format("{date}.csv"), "trades/{date}.csv", "units")
    ran = wincli_here("run", *ROWS, *dates, *daily, cwd=tmp_path)
    assert ran.code == 0, ran.err
    found = [(row["ts"], row["symbol"], row["p_bid"]) for row in rows_of(tmp_path / "units")]
    assert found == [(row["ts"], row["symbol"], row["p_bid"]) for row in rows_of(tmp_path / "one")]
    expected = matches(trades, prices, [("symbol", "symbol")], ("ts", "ts"))
    assert [row[2] for row in found] == ["" if at is None else str(prices[at]["bid"]) for at in expected]
    again = wincli_here("run", *ROWS, *dates, *daily, cwd=tmp_path)
    assert (again.code, rows_of(tmp_path / "units")) == (0, rows_of(tmp_path / "units"))


def test_runs_on_a_state_with_a_path_each_carry_the_last_row_of_each_key(tmp_path: Path) -> None:
    log(tmp_path / "t1.csv", [{"ts": 1, "k": "a"}, {"ts": 2, "k": "b"}])
    log(tmp_path / "t2.csv", [{"ts": 3, "k": "a"}, {"ts": 6, "k": "b"}, {"ts": 6, "k": "a"}])
    log(tmp_path / "p1.csv", [{"ts": 0, "k": "a", "v": 1}, {"ts": 2, "k": "a", "v": 2}, {"ts": 2, "k": "b", "v": 3}])
    log(tmp_path / "p2.csv", [{"ts": 5, "k": "b", "v": 4}])
    for night in "12":
        table = f"p=p{night}.csv on k asof ts take v"
        ran = wincli_here(
            "run", *ROWS, "--state", "st", "--enrich", table, f"t{night}.csv", f"out{night}", cwd=tmp_path
        )
        assert ran.code == 0, ran.err
    assert [row["p_v"] for row in rows_of(tmp_path / "out1")] == ["1", "3"]
    assert [row["p_v"] for row in rows_of(tmp_path / "out2")] == ["2", "4", "2"]
    record = json.loads(next((tmp_path / "st").rglob("*2/*.json")).read_text())
    assert [Path(file["path"]).name for file in record["enrich"]["p"]] == ["p2.csv"]
    manifest = json.loads((tmp_path / "out2/_wincli/manifest.json").read_text())
    assert [file["path"] for file in manifest["enrich"]["p"]] == ["p2.csv"]


def test_late_rows_get_what_the_table_of_their_unit_has(tmp_path: Path) -> None:
    """Night 2 brings a row of night 1, which runs again with it and with its own table."""
    log(tmp_path / "t1.csv", [{"ts": 10, "k": "a"}, {"ts": 20, "k": "a"}])
    log(tmp_path / "t2.csv", [{"ts": 15, "k": "a"}, {"ts": 30, "k": "a"}])
    log(tmp_path / "p1.csv", [{"ts": 1, "k": "a", "v": 1}, {"ts": 14, "k": "a", "v": 2}, {"ts": 16, "k": "a", "v": 3}])
    log(tmp_path / "p2.csv", [{"ts": 29, "k": "a", "v": 4}])
    keyed = ("-w", "count(1)", "-k", "p_v", "--order-by", "ts", "--emit", "rows", "--plain", "--output-format", "csv")
    for night in "12":
        table = f"p=p{night}.csv on k asof ts take v"
        state = ("--state", "st", "--late", "redo", "--enrich", table)
        ran = wincli_here("run", *keyed, *state, f"t{night}.csv", f"out{night}", cwd=tmp_path)
        assert ran.code == 0, ran.err
    assert "belongs to units before it" in ran.err
    found = [[(row["ts"], row["p_v"]) for row in rows_of(tmp_path / name)] for name in ("out1", "out2")]
    assert found == [[("10", "1"), ("15", "2"), ("20", "3")], [("30", "4")]]


def test_a_state_refuses_another_enrichment(tmp_path: Path) -> None:
    for night in "12":
        log(tmp_path / f"t{night}.csv", [{"ts": int(night), "k": "a"}])
    log(tmp_path / "p.csv", [{"ts": 0, "k": "a", "v": 1}])
    run = ("run", *ROWS, "--state", "st", "--enrich")
    assert wincli_here(*run, "p=p.csv on k asof ts take v", "t1.csv", "out1", cwd=tmp_path).code == 0
    ran = wincli_here(*run, "p=p.csv on k asof ts strict take v", "t2.csv", "out2", cwd=tmp_path)
    assert ran.code != 0
    assert "its enrich is p on k asof ts take v, not p on k asof ts strict take v" in ran.err


def test_a_run_is_repeated_if_a_table_has_changed_and_only_then(tmp_path: Path) -> None:
    log(tmp_path / "t.csv", [{"ts": 1, "k": "a"}])
    log(tmp_path / "p.csv", [{"k": "a", "v": 1}])
    run = ("run", "-w", "count(1)", "--order-by", "ts", "--enrich", "p=p.csv on k", "t.csv", "out")
    assert wincli_here(*run, cwd=tmp_path).code == 0
    assert "nothing to do" in wincli_here(*run, cwd=tmp_path).err
    log(tmp_path / "p.csv", [{"k": "a", "v": 22}])
    ran = wincli_here(*run, cwd=tmp_path)
    assert (ran.code != 0, "nothing to do" in ran.err) == (True, False)


def test_a_unit_is_run_again_if_its_own_table_has_changed(tmp_path: Path) -> None:
    for day in DAYS[:2]:
        log(tmp_path / f"t/{day}.csv", [{"ts": f"{day}T01:00:00", "k": "a"}])
        log(tmp_path / f"p/{day}.csv", [{"k": "a", "v": 1}])
    run = (
        "run",
        *ROWS[:-1],
        "--start",
        DAYS[0],
        "--end",
        DAYS[2],
        "--enrich",
        "p=p/{date}.csv on k",
        "t/{date}.csv",
        "out",
    )
    assert wincli_here(*run, cwd=tmp_path).code == 0
    log(tmp_path / f"p/{DAYS[1]}.csv", [{"k": "a", "v": 333}])
    ran = wincli_here(*run, cwd=tmp_path)
    assert (ran.code, "its input is not what it was" in ran.err) == (0, True), ran.err
    assert [row["p_v"] for row in rows_of(tmp_path / "out")] == ["1", "333"]
    (tmp_path / f"p/{DAYS[1]}.csv").unlink()
    ran = wincli_here(*run, cwd=tmp_path)
    assert f"t/{{date}}.csv has files for {DAYS[1]}, and the enrich table p/{DAYS[1]}.csv has none" in ran.err


TABLE = [{"ts": 0, "k": "a", "v": 1, "day": "2026-11-01"}, {"ts": 0, "k": "a", "v": 2, "day": "2026-11-01"}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("p=pp.csv on k", "--enrich p: there is no file or folder pp.csv; did you mean p.csv?"),
        ("p=p.csv on k", "--enrich p: key 'a' is there twice: in p.csv (row 2) and in p.csv (row 3); "),
        ("p=p.csv on kk", "--enrich p: the input has no column 'kk'; did you mean 'k'?"),
        ("p=p.csv on k=kk", "--enrich p: its table has no column 'kk'; did you mean 'k'?"),
        ("p=p.csv on ts=k", "--enrich p: 'ts' is int64 and 'k' of its table is string: these do not compare; "),
        (
            "p=p.csv on k asof k",
            "--enrich p: the order 'k' is compared as string; an as-of order is a time or",
        ),
        ("p=p.csv on k asof ts=day", "--enrich p: 'ts' is int64 and 'day' of its table is date32[day]: these do not"),
        ("p=p.csv on k asof ts take w", "--enrich p: its table has no column 'w'; known: ts, k, v, day"),
        ("p=p.csv on k asof ts take v as k", "--enrich p: the rows have a column 'k' already; take it under another"),
        ("p=p.csv on k asof ts within -1", "expected a duration of 0 or more, found '-1'"),
        ("p=p.csv on", "expected a column, found the end"),
        ("p=p.csv", "expected 'on' and keys behind the path"),
        ("p", "an enrichment begins with NAME=PATH; expected '='"),
        ("p=p.csv on k, k asof ts", "column 'k' is key twice; name it once"),
        ("p=bad.csv on k asof ts", "--enrich p: row 3 of bad.csv cannot be read: "),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    log(tmp_path / "t.csv", [{"ts": 1, "k": "a"}])
    log(tmp_path / "p.csv", TABLE)
    (tmp_path / "bad.csv").write_text("ts,k,v\n0,a,1\n0,a\n")
    ran = wincli_here("run", *ROWS, "--enrich", text, "t.csv", "out", cwd=tmp_path)
    assert ran.code not in (0, 1)
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("window", ["time(60)", "delta(p_v, 60)"])
def test_advice_on_a_missing_clock_needs_no_table(tmp_path: Path, window: str) -> None:
    log(tmp_path / "t.csv", [{"n": "x", "k": "a"}])
    log(tmp_path / "p.csv", [{"k": "a", "v": "2026-13-01 10:00"}])
    ran = wincli_here("run", "-w", window, "--enrich", "p=p.csv on k", "t.csv", "out", cwd=tmp_path)
    assert ran.code not in (0, 1)
    assert "unexpected" not in ran.err


def test_a_variable_holds_one_enrichment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "t.csv", [{"ts": 1, "k": "a"}])
    log(tmp_path / "p.csv", TABLE)
    monkeypatch.setenv("WINCLI_ENRICH", "p=p.csv on k asof ts take v")
    assert wincli_here("run", *ROWS, "t.csv", "out", cwd=tmp_path).code == 0
    assert [row["p_v"] for row in rows_of(tmp_path / "out")] == ["2"]


def test_a_job_file_names_enrichments(tmp_path: Path) -> None:
    log(tmp_path / "t.csv", [{"ts": 1, "k": "a"}])
    log(tmp_path / "p.csv", TABLE)
    enrichments = "enrich:\n  p: p.csv on k asof ts take v\n  q: p.csv on k, p_v=v take ts\n"
    (tmp_path / "job.yaml").write_text(
        "input: t.csv\noutput: out\nwindow: count(1)\norder_by: ts\nemit: rows\noutput_format: csv\n" + enrichments
    )
    assert wincli_here("run", "-q", "job.yaml", cwd=tmp_path).err == ""
    assert [(row["p_v"], row["q_ts"]) for row in rows_of(tmp_path / "out")] == [("2", "0")]
    assert not list((tmp_path / "out").glob("_tables"))
