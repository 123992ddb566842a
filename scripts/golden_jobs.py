"""The matrix of `scripts/golden` as data: logs, windows, outputs, ways to run; pairs of them as jobs; mistakes."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import random
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, orc, parquet

Words = tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """Commands that run one after the other in a folder of their own.

    ``commands``: words of ``wincli``, or ``!python FILE``, ``!copy FROM TO``, ``!edit FILE TEXT``, ``!process ..``,
    which starts the program as a process of its own; ``< FILE`` at the end is stdin,
    ``NAME=VALUE`` before them a variable of the environment.
    ``files``: texts of files that the folder has, by name.
    ``spark``: on which Spark; ``stand-in``: none, a loop runs the tasks; ``cluster``: a loop whose tasks share nothing.
    ``unordered``: why lines of stderr come in any order; empty where they do not.
    ``stores``: what the folder needs around it: ``s3``, ``iceberg``.
    """

    name: str
    commands: tuple[Words, ...]
    files: tuple[tuple[str, str], ...] = ()
    spark: str = "stand-in"
    unordered: str = ""
    stores: Words = ()
    quick: bool = False


# --- logs ---------------------------------------------------------------------------------------------------------

FORMATS = ("parquet", "csv", "jsonl", "orc")
_START = dt.datetime(2021, 3, 1)  # far from now, so that no time of a log is taken for one of a run
_SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "t": pa.int64(),
        "e": pa.int64(),
        "u": pa.string(),
        "k": pa.string(),
        "x": pa.float64(),
        "n": pa.int64(),
        "last": pa.bool_(),
        "lim": pa.int64(),
    }
)
DAYS = ("2021-03-01", "2021-03-02", "2021-03-03")


def _rows(chance: random.Random, count: int, start: dt.datetime, seconds: int, users: str) -> list[dict[str, Any]]:
    """Rows with ties, steps back, nulls and NaN."""
    at, rows = 0, []
    for _ in range(count):
        at = max(0, at + chance.choice([0, 0, 1, 1, 2, 3, 5, 9, -2, 14]))
        rows.append(
            {
                "ts": start + dt.timedelta(seconds=at * seconds),
                "t": at,
                "e": at - chance.choice([0, 0, 0, 1, 4, 11]),
                "u": None if chance.random() < 0.02 else chance.choice(users),
                "k": chance.choice("xyyz"),
                "x": None if chance.random() < 0.06 else chance.randrange(-80, 400) / 8,
                "n": None if chance.random() < 0.03 else chance.randrange(40),
                "last": chance.random() < 0.25,
                "lim": chance.choice([2, 3, 5, 9, -1] if chance.random() < 0.1 else [2, 3, 5, 9]),
            }
        )
    return rows


def write_logs(folder: Path) -> None:
    """Write each log in each format; the times of all files are the same."""
    chance = random.Random(7)
    log = _rows(chance, 180, _START, 700, "abc")
    heavy = _rows(chance, 700, _START, 60, "aaaaaaaaaaaab")
    logs: dict[str, list[list[dict[str, Any]]]] = {
        "log": [log[:70], log[70:75], log[75:]],
        "sorted": _cut(sorted(_rows(chance, 400, _START, 90, "ab"), key=lambda row: row["t"]), 150),
        "heavy": [sorted(heavy, key=lambda row: row["t"])[:300], sorted(heavy, key=lambda row: row["t"])[300:]],
        "late": [[{**row, "u": row["u"] or "a"} for row in _rows(chance, 9, _START, 700, "ab")]],
    }
    for number, day in enumerate(DAYS):
        start = _START + dt.timedelta(days=number)
        logs[f"days/dt={day}"] = [_rows(chance, 40, start, 800, "abc"), _rows(chance, 12, start, 2500, "ab")]
    for form, (name, parts) in itertools.product(FORMATS, logs.items()):
        for number, rows in enumerate(parts):
            _write(folder / form / name / f"{number}.{form}", rows)
    torn = folder / "csv" / "torn" / "a.csv"
    torn.parent.mkdir()
    head = "ts,u,n\n2021-03-01 00:00:01,a,1\nbad\n2021-03-01 00:00:02,,2\n"
    torn.write_text(head + '"2021,b\n,c,3\n2021-03-01 00:01:09,b,x\n')
    (folder / "users.csv").write_text("u,city,since\na,Rome,3\nb,Oslo,\nd,Bonn,9\n")
    (folder / "prices.csv").write_text("k,t,bid\nx,0,1.5\ny,5,2\nx,20,2.5\nx,90,3\ny,91,4.25\nz,0,0\n")
    (folder / "semi.csv").write_text('t;u;n\n1;a;"2\n3"\n2;b;4\n')
    (folder / "empty.csv").write_text("t,u,n\n")
    (folder / "strange.json").write_text('{"t": 1, "u": {"a": [1, 2]}, "n": 1.5}\n{"t": "2", "u": null}\n{"t": 3,\n')
    for path in folder.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))


def _cut(rows: list[dict[str, Any]], size: int) -> list[list[dict[str, Any]]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, _SCHEMA)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=23)
    elif path.suffix == ".orc":
        orc.write_table(table, path)
    elif path.suffix == ".csv":
        csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps({**row, "ts": row["ts"].isoformat()}) + "\n" for row in rows))


# --- windows, outputs, ways ---------------------------------------------------------------------------------------

OUTPUTS = {
    "plain counts": "--expect 'rows_out >= 0' --expect 'rejected_share < 0.5' --max-rejects 500",
    "numbers": "-a n=count() -a count(x) -a sum(x) -a total=sum(n) -a mean(x) -a min(x) -a max(n) -a first(x) "
    "-a last(n) -a var(x) -a sd=stddev(n) -a var_pop(n) -a stddev_pop(x) -a median(x) -a quantile(n,0.9) -a range(x)",
    "choices": "-a mode(k) -a arg_min(k,x) -a arg_max(n,x) -a nth(n,1) -a nth(x,-2) -a min_count(n) "
    "-a max_count(k) -a collect(n) -a collect_distinct(k) -a string_join(k,'+') -a count_distinct(n) -a wavg(x,lim)",
    "sketches": "-a approx_count_distinct(n) -a approx_quantile(x,0.5) -a product(lim) -a bool_and(last) "
    "-a bool_or(last) -a hll_sketch(k) -a kll_sketch(x) --at-end drop",
    "rows": "--emit rows --sort-by 'x desc,n'",
    "entered": "--emit entered",
    "left": "--emit left --sort-by n",
    "groups": "--group-by last,k -a n=count() -a sum(x) -a ids=collect(n)",
    "operator": "--operator ops:Tops",
    "lags": "--let 'd=coalesce(n - lag(n), lag(x, 2))' --where 'x > -5 or x is null' -a sum(d) -a max(d) -a n=count()",
    "having": "-a n=count() -a sum(n) --having 'n > 2 and sum_n <> 31'",
    "empty rows": "--empty row -a n=count() -a sum(x)",
    "empty marks": "--empty mark -a n=count()",
    "closed right": "--closed right -a n=count() -a first(n)",
    "partitions": "--partition-by k2 -a k2=last(k) -a n=count()",
    "enriched": "--enrich 'who=../../data/users.csv on u' --enrich 'p=../../data/prices.csv on k asof t within 30' "
    "-a last(who_city) -a sum(p_bid) -a count(who_since)",
}
KEYS = {"no key": (), "u": ("-k", "u"), "u,k": ("-k", "u,k")}
WAYS = ("task", "exchange", "presorted", "segments", "cluster", "state", "range", "stages", "delta", "memory", "stream")


def _applies(window: str, output: str, key: str, way: str) -> bool:
    """Leave out most of what would only be refused; a few refusals are welcome, as they are golden, too."""
    changes = window.startswith(("sliding", "within", "retain", "partition"))
    on_clock = window.startswith(("time(", "calendar", "cron"))
    if output in ("entered", "left") and (not changes or (output == "left" and "all" in window)):
        return False
    if output in ("empty rows", "empty marks", "closed right") and not on_clock:
        return False
    if ("partitioned" in window or way == "segments") and key == "no key":
        return False
    if way == "presorted" and key != "no key":
        return False
    if way in ("memory", "stream") and output in ("operator", "partitions", "enriched", "plain counts"):
        return False
    return not (way == "delta" and output == "rows")


def pairs(seed: int = 1) -> Iterator[tuple[str, ...]]:
    """Give jobs such that each two values of different dimensions that go together meet in one of them."""
    chance = random.Random(seed)
    windows = [
        line for line in _text("golden_cases.txt").split("\n==")[0].splitlines() if " |" in line and line[0] != "#"
    ]
    dimensions = [windows, list(OUTPUTS), list(KEYS), list(WAYS), list(FORMATS), list(FORMATS)]
    left = {
        (i, a, j, b)
        for i, j in itertools.combinations(range(len(dimensions)), 2)
        for a in dimensions[i]
        for b in dimensions[j]
    }
    order = sorted(left)
    chance.shuffle(order)
    for i, a, j, b in order:
        if (i, a, j, b) not in left:
            continue
        best: tuple[str, ...] = ()
        most = 0
        for _ in range(24):
            row = [chance.choice(values) for values in dimensions]
            row[i], row[j] = a, b
            if _applies(*row[:4]) and (met := len(_met(row) & left)) > most:
                best, most = tuple(row), met
        if best:
            left -= _met(list(best))
            yield best


def _met(row: list[str]) -> set[tuple[int, str, int, str]]:
    return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}


INSPECTIONS = (
    "show out --json", "verify out --json", "status out --json", "show out -n 3", "why out --window 0 {key}",
    "report out -o -", "show out --csv", "verify out", "show out --rejects --json", "status out", "plan {run}",
    "diff out out --json", "why out --window 1 --json {key}", "show out --draw", "plan --json {run}",
)  # fmt: skip


def matrix_jobs() -> Iterator[Job]:
    """The jobs of the pairs, each with an inspection of its result."""
    inspections = itertools.cycle(INSPECTIONS)
    operator = next(dict(job.files)["ops.py"] for job in jobs_by_hand() if "ops.py" in dict(job.files))
    for number, (window, output, key, way, form, out_form) in enumerate(pairs()):
        spec, _, options = window.partition(" | ")
        spec = spec.rstrip("| ")
        words = ("-w", spec, *shlex.split(options), *shlex.split(OUTPUTS[output]), *KEYS[key])
        name = f"{number:03} {spec} / {output} / {key} / {way} / {form} / {out_form}"
        run = (*words, "--output-format", out_form)
        files = (("ops.py", operator),) if output == "operator" else ()
        only = ("--only", "u=a", *(("--only", "k=y") if key == "u,k" else ())) if key != "no key" else ()
        look = _look(next(inspections), run, only, form)
        yield Job(name, tuple(_commands(way, run, form, look)), files + _more(way, words, form, out_form),
                  "cluster" if way == "cluster" else "stand-in", quick=number % 12 == 0)  # fmt: skip


def _look(words: str, run: Words, only: Words, form: str) -> Words:
    found: list[str] = []
    for word in words.split():
        found += {"{run}": (*run, f"../../data/{form}/log", "other"), "{key}": only}.get(word, (word,))
    return tuple(found)


def _commands(way: str, run: Words, form: str, look: Words) -> Iterator[Words]:
    data, small = f"../../data/{form}", ("--split-size", "1KiB", "--slice-size", "2KiB")
    if way in ("memory", "stream"):
        yield ("!python", "call.py")
        return
    if way == "state":
        ranges = [("--start", DAYS[0], "--end", DAYS[2]), ("--start", DAYS[2], "--end", "2021-03-04")]
        yield ("!copy", f"{data}/days", "days")
        state = ("run", *run, "days", "out", "--state", "state", "--late", "redo")
        yield (*state, *ranges[0])
        yield ("!copy", f"{data}/late", f"days/dt={DAYS[2]}")
        yield (*state, *ranges[1])
        yield ("!copy", f"{data}/late/0.{form}", f"days/dt={DAYS[1]}/z.{form}")
        yield (*state, "--start", DAYS[0], "--end", "2021-03-04", "--at-end", "flush")
        yield (("state", "list", "state"), ("show", "state", "--json"), ("verify", "state", "--json"),
               ("status", "state", "--json"), ("report", "state", "-o", "-"))[len(str(run)) % 5]  # fmt: skip
        return
    if way == "range":
        yield ("run", *run, f"{data}/days/dt={{date}}", "out/dt={date}", "--start", DAYS[0], "--end", "2021-03-04")
        yield (*look, *(("--unit", DAYS[1]) if look[0] == "why" else ()))
        return
    if way == "stages":
        yield ("run", "job.yaml")
        yield look
        return
    log = {"presorted": "sorted", "segments": "heavy", "cluster": "sorted"}.get(way, "log")
    cuts = {"task": (), "delta": (), "presorted": ("--split-size", "2KiB", "--slice-size", "8KiB")}.get(way, small)
    table = ("--output-format", "delta") if way == "delta" else ()
    yield ("run", *run, *table, f"{data}/{log}", "out", *cuts)
    yield look
    if way == "delta":
        yield ("run", *run, *table, f"{data}/heavy", "out", "--mode", "overwrite")


def _more(way: str, words: Words, form: str, out_form: str) -> tuple[tuple[str, str], ...]:
    """The job file of two stages, or the program that calls the library."""
    if way in ("memory", "stream"):
        return (("call.py", _python(words, f"../../data/{form}/log", way == "stream")),)
    if way != "stages":
        return ()
    first, second = _keys(words), {"name": "two", "window": "count(3)", "agg": ["rows=count()", "w=collect(window)"]}
    top = {name: first.pop(name) for name in ("enrich", "expect", "max_rejects") if name in first}
    stages = [{"name": "one", **first, "output": "one", "output_format": out_form}, second]
    job = {"input": f"../../data/{form}/log", "output": "out", **top, "stages": stages}
    return (("job.yaml", json.dumps(job, indent=1)),)


def _keys(words: Words) -> dict[str, Any]:
    """Options as keys of a job file."""
    found: dict[str, Any] = {}
    short = {"-w": "window", "-k": "key", "-a": "agg"}
    at = 0
    while at < len(words):
        name = short.get(words[at], words[at].removeprefix("--").replace("-", "_"))
        is_switch = name in ("partial", "emit_evicted")
        value: Any = True if is_switch else words[at + 1]
        if name in ("agg", "let", "enrich", "expect"):
            value = [*found.get(name, []), value]
        elif name in ("key", "group_by", "order_by", "sort_by", "partition_by") and value != "arrival":
            value = value.split(",")
        found[name] = int(value) if name == "max_rejects" else value
        at += 1 if is_switch else 2
    return found


def _python(words: Words, log: str, is_stream: bool) -> str:
    """A program that calls the library with the options of a command line."""
    given = _keys(words)
    given["aggregates"] = given.pop("agg", ["count()"]) if "emit" not in given else None
    numbers = ("origin", "lag", "min_gap")
    given = {name: float(value) if name in numbers and value.isdigit() else value for name, value in given.items()}
    window = given.pop("window")
    call = "aggregate_stream(table.to_reader(31)" if is_stream else "aggregate(table"
    return f"""
import pyarrow.dataset, wincli
table = pyarrow.dataset.dataset({log!r}, format={"json" if "jsonl" in log else log.split("/")[3]!r}).to_table()
found = wincli.{call}, {window!r}, **{given!r})
found = found.read_all() if {is_stream} else found
print(found.schema)
for row in found.to_pylist(): print(*row.values())
"""


# --- jobs by hand, and mistakes -----------------------------------------------------------------------------------


def jobs_by_hand() -> Iterator[Job]:
    """The jobs of `golden_cases.txt`."""
    for block in _text("golden_cases.txt").split("\n== ")[1:]:
        head, *lines = block.split("\n")
        name, _, told = head.partition(" | ")
        options = dict(each.partition("=")[::2] for each in told.split())
        files: dict[str, str] = {}
        commands: list[Words] = []
        for line in lines:
            if line.startswith("file "):
                files[path := line.removeprefix("file ")] = ""
            elif line.startswith("|"):
                files[path] += line[2:] + "\n"
            elif line:
                commands.append(tuple(shlex.split(line)))
        yield Job(name, tuple(commands), tuple(files.items()), "spark" if "spark" in options else "stand-in",
                  options.get("unordered", ""), tuple(each for each in ("s3", "iceberg") if each in options),
                  "quick" in options)  # fmt: skip


def mistakes() -> Iterator[Job]:
    """The mistakes of `golden_mistakes.txt`, some to a job."""
    found: list[Job] = []
    for line in _text("golden_mistakes.txt").splitlines():
        told = line.replace("IN", "../../data/csv/log")
        if not line or line.startswith("#"):
            continue
        files: tuple[tuple[str, str], ...] = ()
        commands: tuple[Words, ...]
        if line.startswith("job: "):
            files = (("job.yaml", told.removeprefix("job: ").replace("\\n", "\n").replace("\\t", "\t") + "\n"),)
            commands = (("plan", "job.yaml"), ("run", "job.yaml", "--log-format", "json"))
        elif line.startswith("w: "):
            window = told.removeprefix("w: ")
            commands = (("run", "-w", window, "../../data/csv/log", "out"),)
        else:
            commands = (tuple(shlex.split(told)),)
        found.append(Job(f"mistake {line}", commands, files, quick=True))
    yield from found


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


def all_jobs() -> list[Job]:
    """All jobs, in the order in which a side runs them."""
    return [*jobs_by_hand(), *mistakes(), *matrix_jobs()]
