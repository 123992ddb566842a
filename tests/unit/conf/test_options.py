"""Options are declared once: what follows from a declaration, and that nothing else tells it anew."""

import inspect
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wincli import aggregate, aggregate_stream, draw, windows
from wincli.cli.arguments import OPTIONS
from wincli.cli.run.fingerprint import job_differences
from wincli.cli.run.request import parse_job
from wincli.conf.job import Job, Stage, default_stage, read_job
from wincli.conf.options import JOB_OPTIONS, STAGE_OPTIONS
from wincli.windowing.arguments import WindowArguments, as_options
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.distinct import parse_distinct
from wincli.windowing.language.joins import parse_join
from wincli.windowing.language.options import WINDOW_OPTIONS, Options
from wincli.windowing.language.parser import parse_let
from wincli.windowing.planning.identity import DECIDING
from wincli.windowing.support.option import Option


def test_every_declaration_is_a_key_and_every_key_of_a_stage_is_declared() -> None:
    assert list(Stage.model_fields) == [each.attribute for each in STAGE_OPTIONS]
    assert list(Job.model_fields) == ["input", "output", "stages", *(each.attribute for each in JOB_OPTIONS)]
    assert all(each.key_help.endswith(".") for each in (*STAGE_OPTIONS, *JOB_OPTIONS))


def test_names_and_flags_are_told_once() -> None:
    names = [each.name for each in OPTIONS]
    shorts = [each.short for each in OPTIONS if each.short]
    assert len(set(names)) == len(names)
    assert len(set(shorts)) == len(shorts)


def test_help_lists_groups_together_and_options_below_those_they_name() -> None:
    groups = [each.group for each in OPTIONS]
    assert sorted(groups, key=groups.index) == groups
    for above, each in pairwise(OPTIONS):
        assert each.below in (None, above.name)


def job(**given: Any) -> dict[str, Any]:
    return {"paths": ["in", "out"], "window": "count(1)", **given}


def test_window_options_of_a_job_without_any_are_those_of_the_library() -> None:
    (stage,) = parse_job(job()).stages
    assert stage.options == Options()


@pytest.mark.parametrize("declared", WINDOW_OPTIONS, ids=lambda each: each.name)
def test_window_option_is_an_argument_of_the_library_with_the_same_default(declared: Option) -> None:
    argument = inspect.signature(aggregate).parameters[declared.attribute]
    assert argument.kind is inspect.Parameter.KEYWORD_ONLY
    default = (
        "flush" if declared.name == "at_end" and argument.default is None else argument.default
    )  # hold, with a state
    assert (default or 0) == (getattr(Options(), declared.attribute) or 0)
    assert f"``{declared.attribute}``: " in (aggregate.__doc__ or "")


def test_a_call_without_options_has_their_declared_values() -> None:
    assert as_options({}) == Options()
    assert as_options({"state": "new"}) == Options(at_end="hold")


def test_arguments_of_the_library_are_the_options_of_a_window_and_six_more() -> None:
    others = {"key", "aggregates", "clock", "since", "plain", "windows"}
    assert set(WindowArguments.__annotations__) == {each.attribute for each in WINDOW_OPTIONS} | others


@pytest.mark.parametrize("way", [aggregate, aggregate_stream, draw, windows], ids=lambda way: way.__name__)
def test_an_argument_that_no_window_has_is_a_mistake_of_python(way: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=rf"{way.__name__}\(\) got an unexpected keyword argument 'sort'"):
        way(None, "count(1)", key="k", sort=1)


VALUES: dict[str, Any] = {
    "distinct": st.sampled_from(["x", "x, y within 3 count 2"]),
    "expression": st.sampled_from(["x > 3", "ok"]),
    "join": st.sampled_from(["q=quotes/ on k left", "q on k where (ok)"]),
    "lets": st.lists(st.sampled_from(["a=b + 1", "c=lower(d)"]), min_size=1, unique=True),
    "names": st.lists(st.sampled_from("abc"), min_size=1, unique=True),
    "number": st.integers(1, 9),
    "switch": st.just(True),
    "text": st.sampled_from(["x", "my:Class"]),
    "duration": st.sampled_from(["1.5s", "90", "2h"]),
    "origin": st.sampled_from(["-5m", "1970-01-01T00:00:07", "90"]),
}
SECONDS = {"1.5s": Fraction(3, 2), "90": Fraction(90), "2h": Fraction(7200), "-5m": Fraction(-300)}
SECONDS["1970-01-01T00:00:07"] = Fraction(7)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


READ: dict[str, Any] = {
    "distinct": parse_distinct,
    "expression": parse_expression,
    "join": parse_join,
    "lets": lambda texts: tuple(map(parse_let, texts)),
}


@given(st.data())
def test_value_of_a_flag_reaches_the_window_and_no_other_option(data: st.DataObject) -> None:
    declared = data.draw(st.sampled_from(WINDOW_OPTIONS))
    words = [word for word in declared.words if word not in ("hold", declared.default)]
    value = data.draw(st.sampled_from(words) if words else VALUES[declared.kind])
    (stage,) = parse_job(job(**{declared.name: value})).stages
    is_time = declared.kind in ("duration", "origin")
    wanted = SECONDS[value] if is_time else READ.get(declared.kind, _as_tuple)(value)
    other = {each.attribute: getattr(Options(), each.attribute) for each in WINDOW_OPTIONS}
    assert {name: getattr(stage.options, name) for name in other} == {**other, declared.attribute: wanted}


def test_identity_of_a_state_keeps_the_order_that_records_have() -> None:
    kept = ["empty", "origin", "partial", "group_by", "emit", "event_time", "lag", "min_gap", "emit_evicted"]
    assert list(DECIDING)[: len(kept)] == kept
    assert set(DECIDING) == {each.name for each in WINDOW_OPTIONS if each.decides_windows}


@pytest.mark.parametrize("declared", JOB_OPTIONS, ids=lambda each: each.name)
def test_another_value_is_another_job_where_the_declaration_says_so(declared: Option) -> None:
    asked = parse_job(job())
    one = asked.model_dump(mode="json", by_alias=True)
    assert bool(job_differences(one, {**one, declared.name: "another"})) == declared.decides_result
    assert asked == read_job(one)


def test_defaults_of_a_stage_are_those_of_its_options() -> None:
    of_stage = {each.name: each.default for each in STAGE_OPTIONS if each.has_default}
    assert {name: default_stage()[name] for name in of_stage} == of_stage
