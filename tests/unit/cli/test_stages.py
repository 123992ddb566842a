"""A chain in one job is the chain of separate runs. Without Java: tasks run in this process."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.in_process import wincli_here
from support.processes import manifest, rejected
from support.strategies import examples
from wincli.cli.run.request import parse_job, read_options
from wincli.cli.run.stage_plans import plan_stages, schema_after_parquet
from wincli.conf.job import Job
from wincli.readers.open import open_source
from wincli.readers.options import ReadOptions
from wincli.windowing.errors import ConfigError
from wincli.windowing.local_executor import LocalExecutor
from wincli.windowing.planning.plan import make_plan

Stages = Sequence[dict[str, Any]]


def job_file(folder: Path, stages: Stages, source: str = "in", output: str = "out", **job: Any) -> Path:
    """A job from ``folder/in`` to ``folder/out``; outputs of stages are names below the folder, too."""
    given = [{**each, "output": str(folder / each["output"])} if "output" in each else each for each in stages]
    told = {"input": str(folder / source), "output": str(folder / output), "stages": given, **job}
    (folder / "job.yaml").write_text(json.dumps(told))
    return folder / "job.yaml"


def asked(folder: Path, stages: Stages) -> Job:
    return parse_job({"paths": (str(job_file(folder, stages)),)})


def run(folder: Path, stages: Stages, *places: str, code: int = 0, **job: Any) -> str:
    """Run a job from a file that is gone afterwards; return what it says."""
    path = job_file(folder, stages, *places, **job)
    ran = wincli_here("run", "-q", path.name, cwd=folder)
    path.unlink()
    assert ran.code == code, ran.err
    return ran.err


def fails(code: int, text: str, folder: Path, stages: Stages, *places: str) -> None:
    assert run(folder, stages, *places, code=code).startswith(f"wincli: error: {text}")


def run_apart(folder: Path, stages: Stages) -> Path:
    """Run the stages as jobs of their own, each over the whole result of the one before; return the last result."""
    source = "in"
    for at, stage in enumerate(stages):
        name = f"apart-{at}"
        own = {key: value for key, value in stage.items() if key != "output"}
        last = at == len(stages) - 1
        own |= {} if last else {"output_format": "parquet", "plain": False}
        run(folder, [own], source, name)
        source = name
    return folder / source


def result(out: Path) -> pa.Table:
    names = [part["name"] for part in manifest(out)["parts"]]
    return pa.concat_tables([pq.read_table(out / name) for name in names])


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def log(size: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "t": pa.array(np.sort(rng.integers(0, max(1, size), size)), pa.timestamp("s")),
        "k": pa.array([f"k{i}" for i in rng.integers(0, 4, size)], pa.string()),
        "flag": rng.random(size) < 0.3,
        "x": pa.array(rng.integers(0, 100, size), pa.int64()),
    })  # fmt: skip


def put(folder: Path, *tables: pa.Table) -> None:
    (folder / "in").mkdir()
    for at, table in enumerate(tables):
        pq.write_table(table, folder / "in" / f"{at}.parquet")


FIRST = ["count(3)", "delta(t, 3)", "time(4)", "punct(flag)", "punct()", "sliding, count(3), count(2)"]
FIRST += ["sliding, time(5), time(2)", "within 3", "retain 2", "timeInterval, intervalDuration(4), discardAge(2)"]
THEN = ["punct()", "count(2)", "delta(x, 5)", "sliding, count(3), delta(x, 9)", "retain 3 every 2", "gap(x, 3)"]
KEYS: st.SearchStrategy[list[str]] = st.sampled_from([[], ["k"]])
FORMS: st.SearchStrategy[dict[str, Any]] = st.sampled_from([
    {},
    {"output": "mid"},
    {"output": "mid", "output_format": "csv"},
    {"output": "mid", "output_format": "jsonl", "plain": True},
    {"output": "mid", "plain": True},
])  # fmt: skip


@st.composite
def chains(draw: st.DrawFn) -> list[dict[str, Any]]:
    first = draw(st.sampled_from(FIRST))
    key = draw(KEYS)
    shapes: list[dict[str, Any]] = [{"agg": of(key)}, {"agg": of(key), "group_by": ("flag",)}, {"emit": "rows"}]
    order = {"event_time": "t"} if first.startswith("timeInterval") else {"order_by": ("t",)}
    stages = [{"window": first, "key": key, **order, **draw(st.sampled_from(shapes)), **draw(FORMS)}]
    for _ in range(draw(st.integers(1, 2))):
        key = draw(KEYS)
        stages.append({"window": draw(st.sampled_from(THEN)), "key": key, "agg": of(key)})
    return stages


def of(key: list[str]) -> list[str]:
    return ["x=sum(x)", "n=count()", *([] if key else ["k=last(k)"])]


@examples(40, deadline=None)
@given(chains(), st.integers(0, 40), st.integers(0, 9))
def test_a_chain_is_the_chain_of_separate_runs(stages: list[dict[str, Any]], size: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = log(size, seed)
        put(folder, table.slice(0, size // 3), table.slice(size // 3))
        run(folder, stages)
        apart = run_apart(folder, stages)
        assert result(folder / "out").equals(result(apart))
        told = manifest(folder / "out")
        counts = [stage["counts"] for stage in [*told["stages"], told]]
        assert counts == [manifest(folder / f"apart-{at}")["counts"] for at in range(len(stages))]


@pytest.mark.parametrize(
    ("form", "plain", "window"), [("csv", True, "punct()"), ("csv", False, "time(4)"), ("jsonl", False, "punct()")]
)
def test_a_stage_in_another_form_is_what_a_run_of_its_own_writes(
    tmp_path: Path, form: str, plain: bool, window: str
) -> None:
    put(tmp_path, log(0, 1), log(30, 1), log(20, 2), log(0, 1))
    first = {"window": window, "order_by": ("t",), "agg": ["x=sum(x)", "t=first(t)"]}
    written = {**first, "output_format": form, "plain": plain}
    run(tmp_path, [{**written, "output": "mid"}, {"window": "count(2)"}])
    run(tmp_path, [written], "in", "alone")
    part = f"part-00000.{form}"
    assert (tmp_path / "mid" / part).read_bytes() == (tmp_path / "alone" / part).read_bytes()
    told, alone = manifest(tmp_path / "mid"), manifest(tmp_path / "alone")
    for key in ("spec", "schema", "order", "stream", "inputs", "stages", "counts", "rows_out", "parts", "rejects"):
        assert told[key] == alone[key]


def test_a_plain_stage_of_which_nothing_is_left_has_a_part_without_rows(tmp_path: Path) -> None:
    put(tmp_path, log(0, 1), log(0, 1))
    run(tmp_path, [{"window": "punct()", "output": "mid", "plain": True}, {"window": "punct()"}])
    assert files(tmp_path / "mid") == ["_SUCCESS", "_wincli/manifest.json", "part-00000.parquet"]
    assert result(tmp_path / "mid").num_rows == 0
    assert result(tmp_path / "out")["_mark"].to_pylist() == ["only", "only"]


KINDS = {
    "s": pa.array([1, 2, 3], pa.timestamp("s")),
    "ms": pa.array([1, 2, 3], pa.timestamp("ms")),
    "us": pa.array([1, 2, 3], pa.timestamp("us", "Europe/Paris")),
    "ns": pa.array([1, 2, 3], pa.timestamp("ns")),
    "d": pa.array([1, 2, 3], pa.date32()),
    "r": pa.array([1, 2, 3], pa.duration("s")),
    "w": pa.array([1, 2, 3], pa.time32("s")),
    "i": pa.array([1, 2, 3], pa.int8()),
    "u": pa.array([1, 2, 3], pa.uint32()),
    "f": pa.array([1, 2, 3], pa.float32()),
    "m": pa.array([Decimal("1.5")] * 3),
    "o": pa.array([True, False, None]),
    "t": pa.array(["a", "b", None]),
    "e": pa.array(["a", "b", None]).dictionary_encode(),
    "b": pa.array([b"a", b"b", None]),
    "l": pa.array([[1], [], None]),
    "g": pa.array([{"a": 1}] * 3),
    "z": pa.nulls(3),
}


@pytest.mark.parametrize(
    ("window", "order", "key"),
    [
        ("count(2)", "s", ()),
        ("count(2)", "ns", ("e", "i")),
        ("time(1)", "ns", ()),
        ("time(1)", "d", ("e", "i")),
        ("sliding, count(2)", "d", ()),
        ("within 1", "s", ("e", "i")),
    ],
)
def test_a_plan_made_beforehand_is_the_plan_made_of_the_result(
    tmp_path: Path, window: str, order: str, key: tuple[str, ...]
) -> None:
    put(tmp_path, pa.table(KINDS))
    calls = [f"{name}=last({name})" for name in KINDS if name not in key] + ["c=collect(s)", "mean(i)"]
    first = {"window": window, "order_by": (order,), "key": key, "agg": calls}
    second = {"window": "count(2)", "agg": ["first(f)", "x=collect(t)"], "key": ("i",)}
    job = asked(tmp_path, [first, second])
    source = open_source(job.input, read_options(job), LocalExecutor())
    planned = plan_stages(job, source)[1]
    run(tmp_path, [first], "in", "alone")
    found = open_source([str(tmp_path / "alone")], ReadOptions(), LocalExecutor())
    assert planned.schema == found.schema
    asked_second = job.stages[1]
    options = replace(asked_second.options, max_rows=job.max_rows_out)
    made = make_plan(asked_second.spec, found.schema, ("i",), None, asked_second.calls, options, found.stream)
    assert planned.plan == made


def test_schema_read_back_is_what_parquet_keeps() -> None:
    assert schema_after_parquet(
        pa.schema([("s", pa.timestamp("s")), ("e", pa.dictionary(pa.int32(), pa.string()))])
    ) == pa.schema([("s", pa.timestamp("ms")), ("e", pa.string())])


def holes() -> pa.Table:
    return pa.table({
        "t": pa.array([1, None, 3, 4, 5], pa.timestamp("s")),
        "k": ["a", "a", None, "b", "b"],
        "x": pa.array([1, 2, 3, None, None], pa.int64()),
    })  # fmt: skip


CHAIN: list[dict[str, Any]] = [
    {"window": "count(1)", "order_by": ("t",), "key": ("k",), "agg": ["x=sum(x)"], "name": "sites"},
    {"window": "delta(x, 5)", "agg": ["x=sum(x)"], "name": "regions"},
    {"window": "count(9)", "name": "all"},
]


def test_the_manifest_follows_every_row_from_the_input_on_and_rejects_stand_beside_the_output_they_are_of(
    tmp_path: Path,
) -> None:
    put(tmp_path, holes())
    first, second, third = CHAIN
    run(tmp_path, [{**first, "output": "sites"}, second, third])
    told = manifest(tmp_path / "out")
    assert [(stage["name"], stage["spec"], stage["output"]) for stage in told["stages"]] == [
        ("sites", "tumbling, count(1)", str(tmp_path / "sites")),
        ("regions", "tumbling, delta(x, 5)", None),
    ]
    assert told["stages"][0]["order"] == {"columns": ["t"], "why": "asked for"}
    assert told["stages"][0]["counts"] == {
        **{"rows_in": 5, "windowed": 3, "rejected": {"null_key": 1, "null_order": 1}},
        **dict.fromkeys(["filtered", "dropped_at_end", "panes_hidden", "held", "carried"], 0),
    }
    assert (told["counts"]["rows_in"], told["spec"]) == (1, "tumbling, count(9)")
    assert [file["path"] for file in told["inputs"]] == [str(tmp_path / "in/0.parquet")]
    assert [part["name"] for part in told["rejects"]] == ["_rejected_before/stage=regions/rejects-00000.ndjson"]
    sites = manifest(tmp_path / "sites")
    assert (sites["stages"], sites["inputs"], sites["spec"]) == ([], told["inputs"], "tumbling, count(1)")
    assert [part["name"] for part in sites["rejects"]] == ["_rejected/rejects-00000.ndjson"]
    regions = rejected(tmp_path / "out", "_file", folder="_rejected_before/stage=regions")
    assert regions == [(str(tmp_path / "sites/part-00000.parquet"),)] * 2

    run(tmp_path, CHAIN, "in", "alone")
    rejects = [name for name in files(tmp_path / "alone") if "rejects" in name]
    assert rejects == [f"_rejected_before/stage={name}/rejects-00000.ndjson" for name in ("regions", "sites")]
    of_sites = rejected(tmp_path / "alone", "x", "_reason", "_row", folder="_rejected_before/stage=sites")
    assert of_sites == [(2, "null_order", 2), (3, "null_key", 3)]
    found = ("k", "window", "_reason", "_file", "_row")
    assert rejected(tmp_path / "alone", *found, folder="_rejected_before/stage=regions") == [
        ("b", window, "null_attribute", "stage sites/part-00000.parquet", window + 2) for window in (0, 1)
    ]


def test_a_later_stage_that_fails_leaves_nothing_and_is_named(tmp_path: Path) -> None:
    put(tmp_path, pa.table({"x": [2**62] * 3}))
    before = files(tmp_path)
    stages = [
        {"window": "count(1)", "agg": ["x=sum(x)"], "output": "mid", "output_format": "csv"},
        {"window": "count(3)", "agg": ["sum(x)"], "name": "totals"},
    ]
    fails(4, "stage totals: sum(x) does not fit int64 in window 0 ", tmp_path, stages)
    assert files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


ILL = {
    "there is no column 'y' for tumbling, delta(y, 1); known: window, ": {"window": "delta(y, 1)"},
    "there is no column 't' for the key": {"window": "count(1)", "key": ("t",)},
    "--marks files: what a stage before gives is no files; ": {"window": "punct()", "marks": "files"},
    "--marks needs a boolean column, and 'x' is int64; name another column": {"window": "punct()", "marks": "x"},
    "the window tumbling, time(5) needs a clock": {"window": "time(5)"},
}


def test_stage_that_does_not_fit_its_input_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    put(tmp_path, log(5, 1))
    for text, last in ILL.items():
        stages = [{"window": "count(2)", "agg": ["x=sum(x)"]}, {**last, "name": "bad"}]
        fails(2, f"stage bad: {text}", tmp_path, stages)
        assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_format_that_cannot_hold_a_column_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    put(tmp_path, pa.table({"x": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}))
    stages = [{"window": "count(1)", "agg": ["last(x)"], "output": "mid", "output_format": "csv", "name": "maps"}]
    fails(2, "stage maps: csv cannot hold column ", tmp_path, [*stages, {"window": "count(1)"}])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_column_that_parquet_cannot_hold_between_stages_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, log(5, 1))
    opened = open_source([str(tmp_path / "in")], ReadOptions(), LocalExecutor())
    source = replace(opened, stored=pa.schema([("x", pa.month_day_nano_interval())]))
    first = {"window": "count(1)", "agg": ["last(x)"]}
    last = {**first, "output_format": "csv"}
    with pytest.raises(ConfigError, match=r"^stage stage-1: parquet cannot hold column .* of type month_day_nano"):
        plan_stages(asked(tmp_path, [first, last]), source)
    (alone,) = plan_stages(asked(tmp_path, [last]), source)
    assert alone.result == alone.plan.schema


OVERLAPS = {
    "out": "{0}/out and {0}/out are the same output, of two stages; ",
    "out/mid": "output {0}/out/mid is inside output {0}/out; ",
    "in/mid": "output {0}/in/mid is inside the input {0}/in; ",
}


def test_outputs_that_overlap_are_refused(tmp_path: Path) -> None:
    put(tmp_path, log(5, 1))
    for mid, text in OVERLAPS.items():
        fails(2, text.format(tmp_path), tmp_path, [{"window": "count(2)", "output": mid}, {"window": "count(2)"}])
        assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_output_that_is_taken_stops_the_job_before_it_begins(tmp_path: Path) -> None:
    put(tmp_path, log(5, 1))
    stages = [{"window": "count(2)", "output": "mid"}, {"window": "count(2)"}]
    run(tmp_path, stages)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    fails(2, f"output {tmp_path}/mid already holds a result; ", tmp_path, stages, "in", "new")
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before
    run(tmp_path, stages, mode="overwrite")
    assert files(tmp_path) == sorted(before)
