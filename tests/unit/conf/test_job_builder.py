"""A job of flags, a job file and defaults: what wins over what, and what flags get wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.places import mistakes
from wincli.cli.run.request import parse_job
from wincli.conf.job import STAGE_KEYS, Job, Stage, defaults, is_table, plain_path, table_address, with_later_keys
from wincli.windowing.errors import ConfigError, SpecError, WincliError

ONE = "input: in\noutput: out\nwindow: count(2)\n"
STAGES = """\
input: in
output: out
stages:
  - window: count(2)
    at_end: drop
  - window: count(3)
    output: second
  - window: count(4)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, *more: str, **flags: Any) -> Job:
    """Read a job file named first, then IN and OUT."""
    Path("j.yaml").write_text(text)
    return parse_job({"paths": ["j.yaml", *more], **flags})


def each(asked: Job, key: str) -> list[Any]:
    return [getattr(stage, key) for stage in asked.stages]


def fault(**given: Any) -> str:
    with pytest.raises(WincliError) as caught:
        parse_job(given)
    return str(caught.value)


# Precedence


def test_flags_alone_make_one_stage() -> None:
    asked = parse_job({"paths": ["in", "out"], "window": "count(2)", "key": ["a,b", "c"], "keep": None, "agg": []})
    usual = defaults()
    stage = {key: usual[key] for key in STAGE_KEYS if key in usual}
    rest = {key: usual[key] for key in usual if key not in stage}
    window = Stage(**{**stage, "name": "window", "window": "count(2)", "key": ("a", "b", "c")})
    assert asked == Job(**{**rest, "input": ("in",), "output": "out", "stages": (window,)})
    assert str(asked.stages[0].spec) == "tumbling, count(2)"
    assert asked.stages[0].calls is None


def test_job_file_and_flags_give_the_same_job_also_as_an_earlier_version_wrote_it_down() -> None:
    text = (
        "input: in\noutput: out\nwindow: delta(ts, 60)\nkey: [a, b]\nagg: {n: count()}\nlag: 0\nplain: true\nkeep: 3\n"
    )
    flags = {"window": "delta(ts, 60)", "key": ["a", "b"], "agg": ["n=count()"], "lag": "0", "plain": True, "keep": 3}
    job = read(text)
    assert job == parse_job({"paths": ["in", "out"], **flags})
    dump = job.model_dump(mode="json", by_alias=True)
    del dump["max_rows_out"], dump["stages"][0]["order_by"]
    assert Job.model_validate(with_later_keys({**dump, "unsafe_commit": True})) == job


def test_a_flag_wins_over_the_file_and_that_over_the_default() -> None:
    text = ONE + "key: a\nmode: overwrite\nplain: true\nagg: [sum(x)]\nspark_conf: {a.b: 1, c.d: true}\n"
    asked = read(text, key=["b"], plain=False, agg=["count()", "max(x)"], max_rejects=0, spark_conf=["a.b=2", "e=x=y"])
    stage = asked.stages[0]
    assert (stage.key, stage.plain, stage.agg) == (("b",), False, ("count()", "max(x)"))
    assert (asked.mode, asked.max_rejects, asked.late) == ("overwrite", 0, "reject")
    assert asked.spark_conf == {"a.b": "2", "c.d": "true", "e": "x=y"}
    assert each(read("input: in\noutput: out\n", window="count(2)"), "window") == ["count(2)"]
    assert each(read(ONE + "key: []\nagg: []\n"), "key") == [()]
    assert read(ONE + "mode: append\n", mode="error").mode == "error"


@pytest.mark.parametrize(
    ("text", "named", "found"),
    [
        ("input: [in, more]\noutput: out\n", (), (("in", "more"), "out")),
        ("input: [in, more]\noutput: out\n", ("a",), (("a",), "out")),
        ("input: [in, more]\noutput: out\n", ("a", "b"), (("a",), "b")),
        ("output: out\n", ("a",), (("a",), "out")),
        ("", ("a", "b", "c"), (("a", "b"), "c")),
        (None, ("a", "b", "c"), (("a", "b"), "c")),
    ],
)
def test_in_and_out_win_over_the_file_and_the_last_of_several_paths_is_out(
    text: str | None, named: tuple[str, ...], found: tuple[Any, Any]
) -> None:
    whole = f"window: count(2)\n{text}"
    job = parse_job({"paths": named, "window": "count(2)"}) if text is None else read(whole, *named)
    assert (job.input, job.output) == found


# Stages


@pytest.mark.parametrize(
    ("key", "more", "flags", "found"),
    [
        ("name", "", {}, ["stage-1", "stage-2", "stage-3"]),
        ("name", "    name: A.b_c-1\n", {}, ["stage-1", "stage-2", "A.b_c-1"]),
        ("at_end", "", {}, ["drop", "flush", "flush"]),
        ("at_end", "at_end: drop\n", {}, ["drop", "drop", "drop"]),
        ("at_end", "", {"at_end": "flush"}, ["flush", "flush", "flush"]),
        ("at_end", "state: s\n", {}, ["drop", "hold", "hold"]),
        ("at_end", "", {"state": "s"}, ["drop", "hold", "hold"]),
        ("at_end", "state: s\nat_end: flush\n", {}, ["drop", "flush", "flush"]),
        ("output_format", "output_format: csv\nplain: true\n", {}, ["parquet", "parquet", "csv"]),
        ("output_format", "    output_format: csv\n", {"output_format": "jsonl"}, ["parquet", "parquet", "jsonl"]),
        ("plain", "plain: true\n", {}, [False, False, True]),
        ("plain", "    plain: false\nplain: true\n", {}, [False, False, False]),
        ("output", "", {}, [None, "second", None]),
    ],
)
def test_what_stages_have_of_their_own_and_of_the_job(
    key: str, more: str, flags: dict[str, str], found: list[Any]
) -> None:
    assert each(read(STAGES + more, **flags), key) == found


# What is wrong


@pytest.mark.parametrize("case", mistakes("options"), ids=lambda case: case["says"][:40])
def test_mistakes_of_flags_are_told(case: dict[str, Any]) -> None:
    given = {"paths": ["in", "out"], "window": "count(2)"} | {"paths": case.get("paths", ["in", "out"])}
    assert fault(**given | case.get("flags", {})).startswith(case["says"])


def test_flags_of_a_window_are_not_for_stages_and_a_wrong_flag_is_no_line_of_the_file() -> None:
    Path("j.yaml").write_text(STAGES)
    single = "is of a single window, and the job file has stages; leave it out (and WINCLI_{}), or change the file"
    assert fault(paths=["j.yaml"], window="count(9)") == f"--window {single.format('WINDOW')}"
    assert fault(paths=["j.yaml"], key=["a"], order_by=["b"]).splitlines() == [
        "the job has 2 mistakes; mend them",
        f"  --key {single.format('KEY')}",
        f"  --order-by {single.format('ORDER_BY')}",
    ]
    assert fault(paths=["j.yaml"], at_end="stop") == "--at-end cannot be 'stop'; known: flush, drop, hold"
    hold = "--at-end hold keeps open windows in a state, and there is none; name a state, or say flush or drop"
    assert fault(paths=["j.yaml"], at_end="hold") == hold


@pytest.mark.parametrize("of_file", [False, True])
def test_one_mistake_in_a_spec_is_a_spec_error_that_shows_where(of_file: bool) -> None:
    with pytest.raises(SpecError) as caught:
        read(ONE.replace("count", "cuont")) if of_file else parse_job({"paths": ["in", "out"], "window": "cuont(2)"})
    assert (caught.value.source, caught.value.span.start) == ("cuont(2)", 0)


MASTERS = ["local", "local[*]", "local[4]", "local[2,3]", "local-cluster[2,1,1024]", "yarn"]


@pytest.mark.parametrize("master", [*MASTERS, "spark://a:7077,b:7077", "k8s://https://x:6443", "armada://x"])
def test_masters_of_spark_and_of_cluster_managers_are_taken(master: str) -> None:
    assert read(ONE, master=master).master == master


# Outputs in tables


@pytest.mark.parametrize(
    ("path", "format", "address"),
    [
        ("out", "delta", "delta+out"),
        ("delta+out", "delta", "delta+out"),
        ("s3://b/out/day={date}", "delta", "delta+s3://b/out/day={date}"),
        ("out", "csv", "out"),
        ("-", "delta", "-"),
        ("iceberg://lake/a.b", "parquet", "iceberg://lake/a.b"),
    ],
)
def test_address_is_of_the_table_that_a_path_and_a_format_name(path: str, format: str, address: str) -> None:
    assert table_address(path, format) == address
    assert plain_path(address) == path.removeprefix("delta+")
    assert is_table(address) == (address not in ("out", "-"))


def test_iceberg_table_of_another_format_is_refused() -> None:
    with pytest.raises(ConfigError, match="is an Iceberg table, and --output-format is delta"):
        table_address("iceberg://lake/a.b", "delta")
