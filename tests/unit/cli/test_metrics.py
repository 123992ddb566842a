"""``--metrics-file``: what a run says for Prometheus, compared with its manifest and its state."""

from __future__ import annotations

import datetime as dt
import json
import re
import string
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.in_process import wincli_here
from support.processes import Ran, manifest
from wincli.cli.monitoring.metrics import text_of, values_in

START = dt.datetime(2026, 11, 1, tzinfo=dt.UTC).timestamp()
DAY = 86400.0
JOB = ("-w", "count(10)", "-k", "user", "--order-by", "ts")
LINE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three days of 100 rows, ten minutes apart; one row a day has no user."""
    for night in range(3):
        folder = tmp_path / "log" / f"dt=2026-11-0{night + 1}"
        folder.mkdir(parents=True)
        ts = [int((START + night * DAY + n * 600) * 1e6) for n in range(100)]
        columns = {
            "ts": pa.array(ts, pa.timestamp("us")),
            "user": [None if n == 50 else "ab"[n % 2] for n in range(100)],
        }
        pq.write_table(pa.table(columns), folder / "a.parquet")
    return tmp_path


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read the text form as its specification says: HELP and TYPE before the samples of each name, each once."""
    found, named = {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            named.append(line.split()[2])
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {named[-1]} gauge"
        else:
            match = LINE.fullmatch(line)
            assert match, line
            assert match[1] == named[-1]
            key = match[1], frozenset((name, unquoted(value)) for name, value in LABEL.findall(match[2]))
            assert key not in found
            found[key] = float(match[3])
    assert len(named) == len(set(named))
    assert text.endswith("\n")
    return found


def metrics(folder: Path, name: str = "m.prom") -> dict[str, float]:
    """Return the samples of a file by name, and by name and label where there is one besides ``output``."""
    found = parsed((folder / name).read_text())
    values = {}
    for (metric, labels), value in found.items():
        own = sorted(text for label, text in labels if label not in ("output", "version"))
        assert "output" in dict(labels)
        values[" ".join([metric.removeprefix("wincli_"), *own])] = value
    return values


def run(folder: Path, *more: str, paths: tuple[str, ...] = ("log", "out"), job: tuple[str, ...] = JOB) -> Ran:
    return wincli_here("run", *job, "--metrics-file", "m.prom", *more, *paths, cwd=folder)


def test_metrics_of_a_run_are_those_of_its_manifest(log: Path) -> None:
    assert run(log).code == 0
    found, told = metrics(log), manifest(log / "out")
    counts = told["counts"]
    assert found["rows_in"] == counts["rows_in"] == 300
    assert found["rows_windowed"] == counts["windowed"]
    assert found["rows_rejected"] == found["rejects null_key"] == 3
    assert found["windows_out"] == told["rows_out"]
    assert (found["rows_late"], found["rows_held"], found["rows_filtered"]) == (0, 0, 0)
    assert (found["last_run_success"], found["last_run_exit_code"]) == (1, 0)
    assert (found["units done"], found["units failed"]) == (1, 0)
    assert found["last_success_timestamp_seconds"] == found["last_run_timestamp_seconds"]
    newest = START + 2 * DAY + 99 * 600
    assert found["newest_row_timestamp_seconds"] == newest
    assert found["newest_row_age_seconds"] == pytest.approx(found["last_run_timestamp_seconds"] - newest, abs=0.01)
    assert set(told["seconds"]) - {"total"} == {"scan"}
    assert found["phase_seconds scan window"] == pytest.approx(told["seconds"]["scan"], abs=0.001)
    assert found["last_run_duration_seconds"] >= found["phase_seconds  plan"]


def test_metrics_of_a_range_are_sums_over_the_units_that_ran(log: Path) -> None:
    span = ("--start", "2026-11-01", "--end", "2026-11-05", "--state", "st")
    assert run(log, *span).code == 0
    found = metrics(log)
    held = json.loads((log / "st" / "2026-11-03" / "unit.json").read_text())["stages"][0]["counts"]["held"]
    assert (found["rows_in"], found["rows_rejected"], found["rows_held"]) == (300, 3, held)
    assert [found[f"units {each}"] for each in ("done", "failed", "skipped", "gap")] == [3, 0, 0, 1]
    success, newest = found["last_success_timestamp_seconds"], found["newest_row_timestamp_seconds"]
    assert run(log, *span).code == 0
    found = metrics(log)
    assert [found[f"units {each}"] for each in ("done", "failed", "skipped", "gap")] == [0, 0, 3, 1]
    assert (found["rows_in"], found["newest_row_timestamp_seconds"]) == (0, newest)
    assert found["last_success_timestamp_seconds"] >= success


def test_a_run_that_fails_says_so_and_keeps_the_time_of_the_last_success(log: Path) -> None:
    assert run(log).code == 0
    before = metrics(log)
    assert run(log, "--max-rejects", "0", "--mode", "overwrite").code == 4
    found = metrics(log)
    assert (found["last_run_success"], found["last_run_exit_code"], found["units failed"]) == (0, 4, 1)
    for name in ("last_success_timestamp_seconds", "newest_row_timestamp_seconds"):
        assert found[name] == before[name]
    assert found["rows_in"] == 0
    assert run(log, "--mode", "overwrite", paths=("nowhere", "out")).code == 3
    assert metrics(log)["last_run_exit_code"] == 3


def test_nothing_to_do_is_a_success(log: Path) -> None:
    assert run(log).code == 0
    assert run(log, "--exit-code-noop", "99").code == 99
    found = metrics(log)
    assert (found["last_run_success"], found["last_run_exit_code"], found["units skipped"]) == (1, 99, 1)


def test_rows_in_arrival_order_have_no_age(log: Path) -> None:
    assert run(log, job=("-w", "count(10)", "--order-by", "arrival")).code == 0
    assert not [name for name in metrics(log) if name.startswith("newest")]


def test_stages_have_seconds_of_their_own(log: Path) -> None:
    (log / "job.yaml").write_text(
        "stages:\n- {name: one, window: count(10), key: user, order_by: ts}\n- {name: two, window: count(2)}\n"
    )
    assert run(log, job=(), paths=("job.yaml", "log", "out")).code == 0
    found = metrics(log)
    assert {"phase_seconds one scan", "phase_seconds scan two"} <= set(found)
    assert (found["rows_in"], found["windows_out"]) == (300, manifest(log / "out")["rows_out"])


def test_the_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(log: Path) -> None:
    (log / "m.prom").write_text(
        '# HELP wincli_info Once.\ngarbage{} \n\xff wincli_last_success_timestamp_seconds{output="out"} nonsense\n'
    )
    assert run(log).code == 0
    assert metrics(log)["last_run_success"] == 1
    assert sorted(each.name for each in log.iterdir()) == ["log", "m.prom", "out"]


ODD = st.text(st.sampled_from(string.printable + "é\u2028\x85"), max_size=12)


@given(st.lists(st.tuples(ODD, st.floats(allow_nan=False, allow_infinity=False)), unique_by=lambda pair: pair[0]))
def test_any_label_and_any_number_read_back(pairs: list[tuple[str, float]]) -> None:
    samples = tuple((value, {"reason": text}) for text, value in pairs)
    text = text_of([("wincli_x", "A\\B\nC", samples)], {"output": 'o"ut'})
    assert text.count("\n") == (len(pairs) + 2 if pairs else 0)
    found = [line for line in text.split("\n") if line and not line.startswith("#")]
    for line, (_, value) in zip(found, pairs, strict=True):
        assert float(line.rpartition(" ")[2]) == value
    if pairs:
        assert values_in(text.encode()).get("wincli_x") == pairs[0][1]
