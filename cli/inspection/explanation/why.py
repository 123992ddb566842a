"""``wincli why``: why a window of a result is as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....windowing.errors import ConfigError
from ....windowing.spark.workers.no_pandas import block_pandas
from ...console.messages import Messages
from ...console.streams import json_text, print_lines, terminal_width
from ..results.key_values import split_only
from ..results.result import ResultFolder
from ..results.shown_rows import results_at
from .explanation import Explanation, MissingWindow
from .facts.fact import Fact
from .facts.facts import facts_of
from .input_rows import read_ends
from .missing import missing_window
from .text import explanation_json, explanation_lines, missing_json, missing_lines
from .windows.panes_of_key import KeyPane
from .windows.recompute import compute_window
from .windows.recorded_stage import RecordedStage, recorded_stage
from .windows.row_values import scalar_text
from .windows.sought import FoundWindow, Sought, find_window, sought_window


@dataclass(frozen=True, slots=True)
class WhyRequest:
    """What is requested.

    ``path``: the result, or the outputs of a range.
    ``only``: the key, ``NAME=VALUE`` for each of its columns.
    ``window``: the number of the window; None: ``at`` says which.
    ``at``: a time in the window; None: ``window`` says which.
    ``unit``: the unit of a range.
    ``rows``: how many rows of the window are shown.
    ``as_json``: whether the answer is JSON.
    """

    path: str
    only: tuple[str, ...] = ()
    window: int | None = None
    at: str | None = None
    unit: str | None = None
    rows: int = 10
    as_json: bool = False


def print_why(request: WhyRequest, messages: Messages) -> None:
    """Print to stdout why a window is as it is; for a key without it, where its rows went.

    Raises `ConfigError` where the request does not fit the result, `InputError` where the result or its input is not
    there, or not as it was.
    """
    block_pandas()
    result = _result(request)
    answer = explain(result, request)
    if isinstance(answer, Explanation) and answer.also:
        also = ", ".join(map(str, answer.also[:5]))
        messages.note(f"that time is in several windows: besides {answer.window} in {also}; --window says which")
    if request.as_json:
        found = explanation_json(answer) if isinstance(answer, Explanation) else missing_json(answer)
        print_lines([json_text(found, 2)])
        return
    width = terminal_width()
    lines = explanation_lines(answer, width) if isinstance(answer, Explanation) else missing_lines(answer, width)
    print_lines(lines)


def explain(result: ResultFolder, request: WhyRequest) -> Explanation | MissingWindow:
    """Explain a window of a result, or say where the rows of its key went. Raises as `print_why` does."""
    with recorded_stage(result) as recorded:
        sought = sought_window(recorded.stage.plan, result.schema, split_only(request.only), request.window, request.at)
        found = find_window(result.rows, sought)
        if found is None:
            return missing_window(result, recorded, sought)
        pane = compute_window(recorded, sought.key, found)
        return _explanation(result, recorded, sought, found, pane, request.rows)


def _result(request: WhyRequest) -> ResultFolder:
    found = results_at(request.path, request.unit)
    if len(found) > 1:
        raise ConfigError(f"{request.path} holds {len(found)} results", f"say --unit, such as --unit {found[0][0]}")
    return found[0][1]


def _explanation(
    result: ResultFolder,
    recorded: RecordedStage,
    sought: Sought,
    found: FoundWindow,
    pane: KeyPane,
    most: int,
) -> Explanation:
    facts = facts_of(pane)
    if recorded.note is not None:
        facts = (*facts, Fact("other", recorded.note))
    pos = pane.panes.sequences.pos[pane.rows]
    named = dict.fromkeys(fact.row for fact in facts if fact.row is not None)
    others = np.array([each for each in named if not (pos == each).any()], np.int64)
    return Explanation(
        result.shown,
        str(recorded.stage.plan.spec),
        tuple((name, scalar_text(value)) for name, value in sought.key.items()),
        found.number,
        {name: scalar_text(value) for name, value in found.row.items() if not name.startswith("_")},
        facts,
        read_ends(recorded.source, pos, most),
        read_ends(recorded.source, others, len(others)),
        found.also,
    )
