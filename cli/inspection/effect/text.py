"""An effect as text for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....windowing.errors import shown
from ....windowing.support.addresses.redaction import redacted
from ...console.amounts import count_of
from ..comparison.text import detail_lines, details_json, renumbered, tally_json
from .effect import Effect, StageEffect

_WORDS = ("gone", "new")


def effect_text(effect: Effect) -> str:
    """Return what a run would change, in lines: how far it reaches, then what changes in each output."""
    lines = [*_reach(effect)]
    for stage in effect.stages:
        lines += ["", *_stage(stage, len(effect.stages) > 1)]
    return "\n".join(redacted(shown(line)) for line in lines)


def _reach(effect: Effect) -> Iterator[str]:
    if not effect.runs:
        yield "nothing runs, so nothing changes"
        return
    yield f"{count_of(len(effect.runs), 'unit')} would run{_again(effect)}: {_few(effect.runs)}"
    if not effect.has_state or effect.reached is None:
        return
    beyond = "no unit was done after it"
    if effect.unaffected:
        stay = "stays as it is" if len(effect.unaffected) == 1 else "stay as they are"
        beyond = f"{_few(effect.unaffected)} {stay}"
    yield f"the correction converges after {effect.reached}: {beyond}"


def _again(effect: Effect) -> str:
    if len(effect.again) == len(effect.runs):
        return " again"
    return f", {len(effect.again):,} of them again" if effect.again else ""


def _few(labels: tuple[str, ...]) -> str:
    return ", ".join(labels) if len(labels) <= 4 else f"{labels[0]} .. {labels[-1]} ({len(labels):,} units)"


def _stage(stage: StageEffect, is_named: bool) -> Iterator[str]:
    tally, which = stage.diff.tally, f"stage {stage.stage}: " if is_named else ""
    if tally.total:
        counts = f"{tally.changed:,} changed, {tally.only_in_a:,} gone, {tally.only_in_b:,} new"
        yield f"{which}{count_of(tally.total, 'window')} would differ: {counts}"
    else:
        yield f"{which}no window would differ"
    if tally.renumbered:
        yield f"{which}{renumbered(tally, 'would ')}"
    for label, rows in stage.new:
        yield f"{label} has no result now, and would have {count_of(rows, 'row')}"
    yield from detail_lines(stage.diff, _WORDS)


def effect_json(effect: Effect) -> dict[str, Any]:
    """Return an effect as plain JSON values."""
    return {
        **effect.numbers,
        "runs": list(effect.runs),
        "again": list(effect.again),
        "reached": effect.reached,
        "unaffected": list(effect.unaffected),
        "stages": [
            {
                "stage": stage.stage,
                **tally_json(stage.diff.tally),
                "new_units": [{"unit": label, "rows": rows} for label, rows in stage.new],
                **details_json(stage.diff),
            }
            for stage in effect.stages
        ],
    }
