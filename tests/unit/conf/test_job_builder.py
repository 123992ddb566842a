"""A job of flags, a job file and defaults: what wins over what, and what flags get wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wincli.cli.run.request import parse_job
from wincli.conf.job import STAGE_KEYS, Job, Stage, defaults, with_later_keys
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


def fault(*paths: str, **flags: Any) -> WincliError:
    with pytest.raises(WincliError) as caught:
        parse_job({"paths": [*paths], **flags})
    return caught.value


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


def test_job_file_and_flags_give_the_same_job() -> None:
    text = (
        "input: in\noutput: out\nwindow: delta(ts, 60)\nkey: [a, b]\nagg: {n: count()}\nlag: 0\nplain: true\nkeep: 3\n"
    )
    flags = {"window": "delta(ts, 60)", "key": ["a", "b"], "agg": ["n=count()"], "lag": "0", "plain": True, "keep": 3}
    assert read(text) == parse_job({"paths": ["in", "out"], **flags})


def test_a_flag_wins_over_the_file_and_that_over_the_default() -> None:
    text = ONE + "key: a\nmode: overwrite\nplain: true\nagg: [sum(x)]\n"
    asked = read(text, key=["b"], plain=False, agg=["count()", "max(x)"], max_rejects=0)
    stage = asked.stages[0]
    assert (stage.key, stage.plain, stage.agg) == (("b",), False, ("count()", "max(x)"))
    assert (asked.mode, asked.max_rejects, asked.late) == ("overwrite", 0, "reject")


def test_a_flag_fills_in_what_the_file_leaves_out_and_its_empty_list_counts() -> None:
    assert each(read("input: in\noutput: out\n", window="count(2)"), "window") == ["count(2)"]
    assert each(read(ONE + "key: []\nagg: []\n"), "key") == [()]


def test_in_and_out_win_over_the_file() -> None:
    text = "input: [in, more]\noutput: out\nwindow: count(2)\n"
    paths = [(read(text, *named).input, read(text, *named).output) for named in [(), ("a",), ("a", "b")]]
    assert paths == [(("in", "more"), "out"), (("a",), "out"), (("a",), "b")]


def test_settings_of_spark_are_merged_one_by_one() -> None:
    text = ONE + "spark_conf: {a.b: 1, c.d: true}\n"
    assert read(text).spark_conf == {"a.b": "1", "c.d": "true"}
    assert read(text, spark_conf=["a.b=2", "e=x=y"]).spark_conf == {"a.b": "2", "c.d": "true", "e": "x=y"}


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
    ],
)
def test_what_stages_have_of_their_own_and_of_the_job(
    key: str, more: str, flags: dict[str, str], found: list[Any]
) -> None:
    assert each(read(STAGES + more, **flags), key) == found


def test_open_windows_are_kept_by_default_with_a_state() -> None:
    assert each(read(ONE, state="s"), "at_end") == ["hold"]
    assert each(read(ONE, state="s", at_end="drop"), "at_end") == ["drop"]


def test_where_stages_are_written() -> None:
    asked = read(STAGES, "in", "elsewhere")
    assert (each(asked, "output"), asked.output) == ([None, "second", None], "elsewhere")


def test_flags_of_a_window_are_not_for_stages() -> None:
    Path("j.yaml").write_text(STAGES)
    assert str(fault("j.yaml", window="count(9)")) == (
        "--window is of a single window, and the job file has stages; "
        "leave it out (and WINCLI_WINDOW), or change the file"
    )
    assert str(fault("j.yaml", key=["a"], order_by=["b"])).splitlines() == [
        "the job has 2 mistakes; mend them",
        "  --key is of a single window, and the job file has stages; leave it out (and WINCLI_KEY), or change the file",
        "  --order-by is of a single window, and the job file has stages; "
        "leave it out (and WINCLI_ORDER_BY), or change the file",
    ]


# Flags that are wrong


def test_a_wrong_flag_is_no_line_of_the_file() -> None:
    Path("j.yaml").write_text(STAGES)
    assert str(fault("j.yaml", at_end="stop")) == "--at-end cannot be 'stop'; known: flush, drop, hold"
    assert str(fault("j.yaml", at_end="hold")) == (
        "--at-end hold keeps open windows in a state, and there is none; name a state, or say flush or drop"
    )


def test_a_flag_in_place_of_what_the_file_has_wrong() -> None:
    assert read(ONE + "mode: append\n", mode="error").mode == "error"


def test_a_spec_error_of_a_flag_shows_where() -> None:
    error = fault("in", "out", window="dleta(ts, 60)")
    assert isinstance(error, SpecError)
    assert str(error) == "unknown window 'dleta'; did you mean 'delta'?\n  dleta(ts, 60)\n  ^^^^^"


def test_all_wrong_flags_are_listed() -> None:
    error = fault("in", "out", agg=["sum(x"], lag="soon", late="redo")
    assert isinstance(error, ConfigError)
    assert str(error) == (
        "the job has 4 mistakes; mend them\n"
        "  no window is given; say --window SPEC, for example --window 'delta(ts, 60)'\n"
        "  this parenthesis is never closed; write it as [NAME=]FUNCTION(COLUMN, ..)\n"
        "    sum(x\n"
        "       ^\n"
        "  --lag 'soon' is no duration: expected a number, found 'soon'; write it as 10, 1.5s or 5m\n"
        "  --late redo runs again from a state, and there is none; name a state, or say reject"
    )


def test_a_job_that_an_earlier_version_wrote_down_reads_with_the_defaults_of_later_keys() -> None:
    job = parse_job({"paths": ["in", "out"], "window": "count(2)", "keep": 3})
    dump = job.model_dump(mode="json", by_alias=True)
    del dump["max_rows_out"], dump["stages"][0]["plain"]
    assert Job.model_validate(with_later_keys(dump)) == job


def test_several_inputs_the_last_path_is_out() -> None:
    job = parse_job({"paths": ["a.csv", "b.csv", "c.csv", "out"], "window": "count(2)"})
    assert (job.input, job.output) == (("a.csv", "b.csv", "c.csv"), "out")
    job = read("window: count(2)\n", "a.csv", "b.csv", "out")
    assert (job.input, job.output) == (("a.csv", "b.csv"), "out")
    job = read("window: count(2)\noutput: out\n", "a.csv")
    assert (job.input, job.output) == (("a.csv",), "out")


def test_arguments_that_are_missing_or_too_many() -> None:
    assert str(fault(window="count(2)")) == "neither IN nor OUT is named; write IN.. OUT, or name a job file"
    assert str(fault("in", window="count(2)")) == "there is no OUT behind in; write IN.. OUT, or name a job file"
    assert str(fault("in", "out", "j.yaml")) == "j.yaml is not the first path; name the job file before IN and OUT"
