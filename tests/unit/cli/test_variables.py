"""Environment variables of options that may be given several times: one value a line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli.cli import launch, main
from wincli.cli.arguments import OPTIONS, REPEATABLE, values_of, with_variables
from wincli.cli.run.request import parse_job

LINES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1).filter(
    lambda text: text.strip() and len(text.splitlines()) == 1
)
ALL = [
    ("lets", "a=b + c", ["a=b + c"]),
    ("lets", "a=b + c\n  d = not e=f\n\n", ["a=b + c", "d = not e=f"]),
    ("expectations", "rejected = 0 and rows_in > 5", ["rejected = 0 and rows_in > 5"]),
    ("enrichments", "p=p.csv on k asof ts\r\nq=q.csv on k", ["p=p.csv on k asof ts", "q=q.csv on k"]),
    ("partitions", "day=date_trunc('day', ts), user", ["day=date_trunc('day', ts), user"]),
    ("calls", "count() p95=quantile(x,0.95)  x=mod:fn(a)", ["count()", "p95=quantile(x,0.95)", "x=mod:fn(a)"]),
    ("calls", "rise=last(t) - first(t)", ["rise=last(t) - first(t)"]),
    ("calls", "a=sum(x) where ok\nb=sum(x, y)", ["a=sum(x) where ok", "b=sum(x, y)"]),
    ("names", "user host", ["user", "host"]),
    ("names", "user,host\nshop", ["user,host", "shop"]),
    ("names", '"my column",user', ['"my column",user']),
    ("names", "my column, user", ["my column, user"]),
    ("names", "price desc user  asc description", ["price desc", "user  asc", "description"]),
    ("settings", "spark.a=1 spark.b=2", ["spark.a=1", "spark.b=2"]),
    (
        "settings",
        "spark.driver.extraJavaOptions=-Xmx1g -Da=b\nspark.b=2",
        ["spark.driver.extraJavaOptions=-Xmx1g -Da=b", "spark.b=2"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "values"), ALL)
def test_a_variable_holds_one_value_a_line(kind: Any, text: str, values: list[str]) -> None:
    assert values_of(text, kind) == values


@given(st.sampled_from(["lets", "expectations", "enrichments", "partitions"]), st.lists(LINES))
def test_lines_of_expressions_stay_whole(kind: Any, lines: list[str]) -> None:
    assert values_of("\n".join(lines), kind) == [line.strip() for line in lines]


def test_a_flag_overrides_a_variable_and_an_empty_one_gives_nothing() -> None:
    environ = {"WINCLI_LET": "a=b + c", "WINCLI_KEY": "", "WINCLI_AGG": "count()"}
    assert with_variables({"let": None, "agg": ["n=count()"], "window": "w"}, environ) == {
        "let": ["a=b + c"], "agg": ["n=count()"], "window": "w",
    }  # fmt: skip


def test_an_expression_with_spaces_comes_from_the_environment_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(launch, "run_command", lambda options, *_: seen.append(options) or 0)
    for name, text in {
        "LET": "a=b + c\nd=a * 2", "ENRICH": "p=p.csv on k", "WINDOW": "count(2)", "SORT_BY": "b desc", "EMIT": "rows",
        "EXPECT": "rows_in > 1", "SPARK_CONF": "spark.a=1 spark.b=2", "PARTITION_BY": "e=a % 2", "KEY": "k",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"WINCLI_{name}", text)
    assert main._main(["run", "in", "out"]) == 0
    job = parse_job(seen[0])
    stage = job.stages[0]
    assert (stage.let, stage.sort_by, stage.partition_by) == (("a=b + c", "d=a * 2"), ("b desc",), ("e=a % 2",))
    assert (stage.key, job.enrich, job.expect) == (("k",), ("p=p.csv on k",), ("rows_in > 1",))
    assert job.spark_conf == {"spark.a": "1", "spark.b": "2"}


def test_every_option_has_its_variable_from_typer_or_from_here() -> None:
    assert {each.name for each in REPEATABLE} >= {"let", "agg", "enrich", "expect", "partition_by", "spark_conf"}
    by_typer = {parameter.name for parameter in main.run_parameters() if parameter.envvar}
    assert by_typer == {each.name for each in OPTIONS} - {each.name for each in REPEATABLE}
