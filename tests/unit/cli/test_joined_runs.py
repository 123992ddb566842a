"""Joins with another log from run to run: nights, late rows of either side, ranges, chains, cases, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wincli
from support.in_process import done
from support.processes import manifest, table
from wincli.cli.inspection.forecast import drawing

DAYS = 3
RANGE = ("--start", "2026-01-01", "--end", "2026-01-04", "--state", "state")
WINDOW = ("--window", "around(2h, 1h)")


def put_log(folder: Path, name: str, rows: int, seed: int, late: float = 0.0) -> None:
    """Write a log of three days, a file each; some rows come a day late."""
    random = np.random.default_rng(seed)
    folder.mkdir()
    at, key = np.sort(random.integers(0, DAYS * 86400, rows)), random.choice(list("abc"), rows)
    day = np.minimum(at // 86400 + (random.random(rows) < late), DAYS - 1)
    times = np.datetime64("2026-01-01", "us") + at.astype("m8[s]")
    for each in range(DAYS):
        own = day == each
        log = pa.table({"ts": times[own], "k": key[own].tolist(), name: np.arange(rows)[own]})
        pq.write_table(log, folder / f"2026-01-0{each + 1}.parquet")


def put_logs(tmp_path: Path, late: float = 0.0) -> None:
    put_log(tmp_path / "l", "v", 60, 1, late)
    put_log(tmp_path / "r", "m", 90, 2, late)


def rows_of(out: Path) -> list[tuple[Any, ...]]:
    """The rows of a result, but for what counts arrivals."""
    folders = sorted({path.parent for path in out.rglob("part-*.parquet") if path.parent.name != "_rejected"})
    found = [row for folder in folders for row in table(folder).to_pylist() if row["_mark"] != "only"]
    left_out = {"_pos", "_mark", *(name for row in found for name in row if name.startswith("_tie"))}
    return sorted(tuple((name, str(row[name])) for name in sorted(row) if name not in left_out) for row in found)


def run(tmp_path: Path, join: str, left: str, out: str, *more: str, window: Sequence[str] = WINDOW) -> None:
    done(tmp_path, "run", "--join", join, *window, *more, left, out)


@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
def test_nights_are_one_run(tmp_path: Path, how: str) -> None:
    put_logs(tmp_path)
    run(tmp_path, f"q=r/{{date}}.parquet on k {how}", "l/{date}.parquet", "nights/{date}", *RANGE)
    run(tmp_path, f"q=r on k {how}", "l", "one", "--at-end", "hold", "--state", "other")
    assert rows_of(tmp_path / "nights") == rows_of(tmp_path / "one") != []


def test_late_rows_of_either_side_go_to_the_unit_of_their_place(tmp_path: Path) -> None:
    put_logs(tmp_path, late=0.05)
    more = ("--where", "v <> 20", *RANGE)
    join = "on k full where (m <> 30)"
    run(tmp_path, f"q=r/{{date}}.parquet {join}", "l/{date}.parquet", "nights/{date}", *more, "--late", "redo")
    run(tmp_path, f"q=r {join}", "l", "one", "--where", "v <> 20", "--at-end", "hold", "--state", "other")
    assert rows_of(tmp_path / "nights") == rows_of(tmp_path / "one") != []


def test_a_unit_whose_right_files_have_changed_runs_again(tmp_path: Path) -> None:
    put_logs(tmp_path)
    args = ("run", "--join", "q=r/{date}.parquet on k", *WINDOW, *RANGE, "l/{date}.parquet", "out/{date}")
    done(tmp_path, *args)
    assert "nothing to do" in done(tmp_path, *args, "--exit-code-noop", "0").err
    changed = pq.read_table(tmp_path / "r" / "2026-01-02.parquet").slice(1)
    pq.write_table(changed, tmp_path / "r" / "2026-01-02.parquet")
    assert "2026-01-02 is run again: its input is not what it was" in done(tmp_path, *args).err
    run(tmp_path, "q=r on k", "l", "one", "--at-end", "hold", "--state", "other")
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "one")


def test_units_with_files_on_one_side_only_are_an_error(tmp_path: Path) -> None:
    put_logs(tmp_path)
    (tmp_path / "r" / "2026-01-02.parquet").unlink()
    args = ("run", "--join", "q=r/{date}.parquet on k", *WINDOW, *RANGE, "l/{date}.parquet", "out/{date}")
    error = done(tmp_path, *args, code=3).err
    assert "has files for 2026-01-02, and the log q of --join" in error


@pytest.mark.parametrize(
    ("join", "more", "words"),
    [
        ("q=r on k", RANGE, "has no {date}"),
        ("q=r/{date}.parquet on k", (), "is a template for units of a range"),
        ("q=gone on k", (), "--join q: there is no file or folder gone"),
        ("q=r on nothing", (), "no column 'nothing'"),
        ("q=r on k by ts=nothing", (), "no column 'nothing'"),
        ("q=r on k", ("--key", "v"), "the key is v"),
        ("q=r on k2=k", ("--let", "k2=k"), "'k2' is computed by --let"),
        ("q=r on k by t2=ts", ("--let", "t2=ts"), "compute it in a stage before, as with window count(1)"),
        ("q=r on e_k=k", ("--enrich", "e=r/2026-01-01.parquet on k"), "'e_k' is computed by --enrich e"),
        ("q=r on k", ("--order-by", "arrival"), "two logs have no common order of arrival"),
        ("q=r on k", ("--enrich", "q=r on k asof ts"), "--join q has the name of another log or table"),
    ],
)
def test_mistakes_say_what_to_do(tmp_path: Path, join: str, more: tuple[str, ...], words: str) -> None:
    put_logs(tmp_path)
    out = "out/{date}" if more == RANGE else "out"
    left = "l/{date}.parquet" if more == RANGE else "l"
    code = 3 if "gone" in join else 2
    assert words in done(tmp_path, "run", "--join", join, *WINDOW, *more, left, out, code=code).err
    assert not (tmp_path / "out").exists()


def test_a_log_is_read_once_on_a_state(tmp_path: Path) -> None:
    put_logs(tmp_path)
    state = ("--state", "state")
    run(tmp_path, "q=r/2026-01-01.parquet on k", "l/2026-01-01.parquet", "one", *state)
    args = ("--join", "q=r/2026-01-01.parquet on k", *WINDOW, *state, "l/2026-01-02.parquet", "two")
    assert "was read by" in done(tmp_path, "run", *args, code=2).err
    run(tmp_path, "q=r/2026-01-02.parquet on k", "l/2026-01-02.parquet", "two", *state)


def test_a_later_stage_joins_another_log(tmp_path: Path) -> None:
    left = pa.table({"t": [1, 2, 5, 6], "k": ["a"] * 4, "v": [1, 2, 3, 4]})
    right = pa.table({"at": [0, 3, 7], "k": ["a"] * 3, "m": [10, 20, 30]})
    pq.write_table(left, tmp_path / "l.parquet")
    pq.write_table(right, tmp_path / "r.parquet")
    job = """
        stages:
          - name: sums
            window: time(3)
            key: k
            order_by: t
            agg: [s=sum(v)]
          - name: quoted
            window: at(0)
            join: q=r.parquet on k by window_end=at left
    """
    (tmp_path / "job.yaml").write_text("\n".join(line[8:] for line in job.strip("\n").splitlines()))
    done(tmp_path, "run", "job.yaml", "l.parquet", "out")
    found = sorted((row["window_end"], row["s"], row["q_m"]) for row in table(tmp_path / "out").to_pylist())
    assert [row for row in found if row[1] is not None] == [(3, 3, 20), (6, 3, 20), (9, 4, 30)]


def test_enriched_columns_are_of_the_left(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, 4], "k": ["a", "b"]}), tmp_path / "l.parquet")
    pq.write_table(pa.table({"t": [0, 3], "k": ["a", "b"], "m": [1, 2]}), tmp_path / "r.parquet")
    pq.write_table(pa.table({"k": ["a", "b"], "name": ["A", "B"]}), tmp_path / "names.parquet")
    more = ("--enrich", "n=names.parquet on k", "--order-by", "t")
    run(tmp_path, "q=r.parquet on k", "l.parquet", "out", *more, window=("--window", "around(2, 1)"))
    found = [(row["k"], row["n_name"], row["q_m"]) for row in table(tmp_path / "out").to_pylist()]
    assert sorted(found) == [("a", "A", 1), ("b", "B", 2)]
    run(tmp_path, "q=r.parquet on k union", "l.parquet", "both", *more, window=("--window", "count(10)"))
    found = [(row["t"], row["_side"], row["n_name"]) for row in table(tmp_path / "both").to_pylist()]
    assert sorted(found) == [(0, "right", None), (1, "left", "A"), (3, "right", None), (4, "left", "B")]


def test_cases_have_rows_of_both_sides(tmp_path: Path) -> None:
    job = """
        input: trades
        output: out
        join: q=quotes on k by t=at left
        window: around(2, 1)
        order_by: t
    """
    cases = """
        cases:
        - name: a trade and its quotes
          given: |
            t,k
            4,a
            9,a
          tables:
            q: |
              at,k,mid
              2,a,20
              3,b,30
              5,a,50
          expect: |
            t,k,q_mid
            4,a,20
            4,a,50
            9,a,
    """
    for name, text in (("job.yaml", job), ("job.test.yaml", cases)):
        (tmp_path / name).write_text("\n".join(line[8:] for line in text.strip("\n").splitlines()))
    done(tmp_path, "test", "job.yaml")
    (tmp_path / "job.test.yaml").write_text((tmp_path / "job.test.yaml").read_text().replace("4,a,50", "4,a,51"))
    done(tmp_path, "test", "job.yaml", code=1)


def run_nights(folder: Path, join: str, *nights: tuple[pa.Table, pa.Table | None], more: Sequence[str]) -> list[Any]:
    """Run nights by ``t`` on a state, the last to the end; return the rows of all, and how many each has held."""
    rows = list[Any]()
    for night, (left, right) in enumerate(nights):
        names = {"l": left} if right is None else {"l": left, "r": right}
        for name, log in names.items():
            pq.write_table(log, folder / f"{name}{night}.parquet")
        path = "r" if right is None else f"r=r{night}.parquet"
        args = ("--join", f"{path} {join}", *more, "--state", "state", f"l{night}.parquet", f"out{night}")
        done(folder, "run", "--at-end", "flush" if night + 1 == len(nights) else "hold", *args)
        rows += table(folder / f"out{night}").to_pylist()
    return rows


@pytest.mark.parametrize("window", ["count(3)", "time(10)", "gap(t, 5)", "timeInterval, intervalDuration(10)"])
def test_rows_of_one_side_wait_in_the_open_window_for_those_of_the_other(tmp_path: Path, window: str) -> None:
    """A night that shows no pair has no pane of the join, and one of the window."""
    log = lambda *times: pa.table({"t": pa.array(times, pa.int64())})  # noqa: E731
    nights = ((log(), log(1)), (log(2), log()))
    found = run_nights(tmp_path, "by t", *nights, more=("--window", window))
    assert [(row["t"], row["r_t"]) for row in found if row["_mark"] != "only"] == [(2, 1)]
    assert [manifest(tmp_path / f"out{night}")["counts"]["held"] for night in (0, 1)] == [1, 0]


def test_batches_of_one_log_go_on_where_they_stopped_though_the_other_side_holds_older_rows(tmp_path: Path) -> None:
    """The left has rows 2 to 4; the right has had batches of 1 2 and 3 4, so 5 waits for 6."""
    log = lambda *times: pa.table({"t": pa.array(times, pa.int64())})  # noqa: E731
    more = ("--window", "retain 3 join retain 2 every 2", "--match", "t > r_t")
    found = run_nights(tmp_path, "by t", (log(1, 2, 3, 4), None), (log(5), None), (log(6), None), more=more)
    told = [(row["_at"], row["t"], row["r_t"]) for row in found if row["_mark"] != "only"]
    assert told == [(2, 2, 1), (3, 3, 1), (3, 3, 2), (4, 4, 3), (5, 5, 3), (5, 5, 4), (6, 6, 5)]


@pytest.mark.parametrize("nights", [((1, 2, 3, 4),), ((1, 2), (3, 4)), ((1,), (2,), (3,), (4,))])
def test_a_row_of_one_log_has_a_partner_on_each_of_its_sides_or_not(tmp_path: Path, nights: Any) -> None:
    """1 meets a newer row as a left row, and none as a right row; 4 the other way round."""
    logs = [(pa.table({"t": pa.array(times, pa.int64())}), None) for times in nights]
    more = ("--window", "sliding, count(2) join count(2)", "--match", "t = r_t - 1")
    found = run_nights(tmp_path, "by t full", *logs, more=more)
    told = [(row["_at"], row["t"], row["r_t"]) for row in found if row["_mark"] != "only"]
    assert told == [(2, 1, 2), (3, 2, 3), (3, None, 1), (4, 3, 4), (None, 4, None)]


KEYED = pa.schema({"t": pa.int64(), "k": pa.string()})


def keyed(*rows: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"t": t, "k": k} for t, k in rows], KEYED)


@pytest.mark.parametrize(
    ("how", "reasons"),
    [("left", {"late": 2}), ("full", {"late": 2}), ("inner", {"late": 1, "null_key": 1})],
)
def test_a_late_row_is_rejected_whatever_its_key(tmp_path: Path, how: str, reasons: dict[str, int]) -> None:
    """By the watermark of one log, and by the night before of two; where no row comes out alone its key says it."""
    rows = (9, "a"), (1, "a"), (1, None)
    more = ("--window", "timeInterval, intervalDuration(2)")
    run_nights(tmp_path, f"on k {how}", (keyed(*rows), None), more=(*more, "--event-time", "t"))
    assert manifest(tmp_path / "out0")["counts"]["rejected"] == reasons
    (tmp_path / "two").mkdir()
    run_nights(tmp_path / "two", f"on k by t {how}", (keyed((9, "a")), keyed()), (keyed(*rows[1:]), keyed()), more=more)
    assert manifest(tmp_path / "two" / "out1")["counts"]["rejected"] == reasons


def test_rejected_rows_say_the_side_that_they_are_of(tmp_path: Path) -> None:
    logs = keyed((1, "a"), (9, "a")), pa.Table.from_pylist([{"t": None, "k": "a"}, {"t": 2, "k": "a"}], KEYED)
    run_nights(tmp_path, "on k by t", logs, (keyed((3, "a")), keyed((4, "a"))), more=("--window", "time(2)"))
    found = []
    for out in ("out0", "out1"):
        parts = sorted((tmp_path / out / "_rejected").glob("*.ndjson"))
        found.append([json.loads(line) for part in parts for line in part.read_text().splitlines()])
    assert [[(row["reason"], row["row"]["_side"], row["row"]["t"]) for row in rows] for rows in found] == [
        [("null_order", "right", None)],
        [("late", "right", 4), ("late", "left", 3)],
    ]


def test_status_says_which_files_of_each_side_a_unit_has_read(tmp_path: Path) -> None:
    put_logs(tmp_path)
    run(tmp_path, "q=r/{date}.parquet on k", "l/{date}.parquet", "nights/{date}", *RANGE)
    run(tmp_path, "q on k by ts", "l", "one")
    for path in ("state", "nights"):
        lines = done(tmp_path, "status", path).out.splitlines()
        assert lines[1].endswith("rejected  files")
        assert [line.endswith("1 left, 1 q") for line in lines[2:5]] == [True] * DAYS
        units = json.loads(done(tmp_path, "status", path, "--json").out)["units"]
        read = [{side: [Path(each).parts[-2:] for each in files] for side, files in unit["files"].items()}
                for unit in units]  # fmt: skip
        names = [f"2026-01-0{day + 1}.parquet" for day in range(DAYS)]
        assert read == [{"left": [("l", name)], "q": [("r", name)]} for name in names]
    assert "files" not in json.loads(done(tmp_path, "status", "one", "--json").out)["units"][0]


PLANNED = [
    (("--window", "around(2h, 1h)", "--match", "q_m > v"), "pane 0: "),
    (("--window", "sliding, count(2) join count(1)"), "pane 0: "),
    (("--window", "time(6h)", "--agg", "n=count()"), "  n="),
]


@pytest.mark.parametrize(("words", "drawn"), PLANNED)
def test_a_plan_draws_both_sides(tmp_path: Path, words: tuple[str, ...], drawn: str) -> None:
    put_logs(tmp_path)
    out = done(tmp_path, "plan", "--join", "q=r on k where (m > 3) take m", *words, "l", "out").out
    assert drawn in out
    assert "right a:" in out


def test_a_plan_over_first_rows_draws_both_sides_as_far_as_both_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"t": range(0, 200, 10), "v": range(20)}), tmp_path / "l.parquet")
    pq.write_table(pa.table({"t": range(200), "m": range(200)}), tmp_path / "r.parquet")
    monkeypatch.setattr(drawing, "_HEAD", 40)
    monkeypatch.setattr(drawing, "_PIECE", 1)
    out = done(tmp_path, "plan", "--join", "q=r.parquet by t", "--window", "around(3, 0)", "l.parquet", "out").out
    assert out.count("left") > 1
    assert [line.split("  ")[-2] for line in out.splitlines() if "pane 1:" in line] == ["7..10"]
    assert "drawn over the first 22 rows as they arrive" in out


def test_a_plan_says_when_both_sides_end(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, 5, 9], "v": [1, 2, 3]}), tmp_path / "l.parquet")
    pq.write_table(pa.table({"at": [2, 5, 20, 30], "m": [1, 2, 3, 4]}), tmp_path / "r.parquet", row_group_size=2)
    join = ("--join", "q=r.parquet by t=at", "--window", "around(3, 0)")
    out = " ".join(done(tmp_path, "plan", *join, "l.parquet", "out").out.split())
    assert "the left ends at 9, the right at 30: at most 2 rows of the right are behind it" in out
    (tmp_path / "l.csv").write_text("t,v\n1,2\n")
    (tmp_path / "r.csv").write_text("at,m\n2,1\n")
    of_text = ("--join", "q=r.csv by t=at", "--window", "around(3, 0)")
    for words in (("l.csv",), ("l.parquet", *of_text), ("l.csv", *of_text)):
        out = " ".join(done(tmp_path, "plan", *(words[1:] or join), words[0], "out").out.split())
        assert "when the left and the right end is not known" in out
        assert "ends at" not in out
        told = json.loads(done(tmp_path, "plan", *(words[1:] or join), words[0], "out", "--json").out)
        assert told["input"]["ends"] is None
    assert "not known" not in done(tmp_path, "plan", "--window", "count(1)", "l.csv", "out").out


@pytest.mark.parametrize("says_sides", [True, False])
def test_states_of_one_log_go_on_that_do_not_say_on_which_side_a_row_still_is(says_sides: bool) -> None:
    """As those up to 0.21: each row is on all its sides, and had a partner on all of them or on none."""
    found: list[Any] = []
    state: Any = "new"
    job: dict[str, Any] = {"join": "r by t left", "match": "t = r_t - 1"}
    for times in ((1, 2), (3,), (4,)):
        log = pa.table({"t": pa.array(times, pa.int64())})
        more = {"at_end": "flush" if times == (4,) else "hold"}
        result, after = wincli.aggregate(log, "sliding, count(2) join count(2)", **job, **more, state=state)
        keys = after.to_pylist()
        for row in (row for key in keys for row in key["_rows"] or []):
            row["_side"] = row["_side"] if says_sides else 3
        state = pa.Table.from_pylist(keys, after.schema)
        found += [(row["_at"], row["t"], row["r_t"]) for row in result.to_pylist() if row["_mark"] != "only"]
    assert found == [(2, 1, 2), (3, 2, 3), (4, 3, 4), (None, 4, None)]
