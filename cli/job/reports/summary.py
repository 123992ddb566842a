"""Messages at the end of a run: what it noticed, the counts of its stages, and the closing summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....windowing.ports import Counts
from ...console.counts import count_of, reason_counts
from ...console.messages import Messages
from ...console.row_accounts import WORDS
from ...request.request import JobRequest
from ...request.stage_names import stage_prefix, with_stage_keys
from ..staged_job import StageRun


def report_outcome(
    request: JobRequest, runs: Sequence[StageRun], seconds: float, messages: Messages, cut_at: int | None = None
) -> None:
    """Write what the run noticed, the counts of each stage where there are several, and the closing summary.

    The summary has the rows that the first stage read, the windows of the last stage, and all other counts summed over
    all stages. ``seconds``: the time of the whole run. ``cut_at``: how many rows were read, where the input has more
    than the limit; else None.
    """
    for each in runs:
        _report_findings(request, each, messages)
    if len(runs) > 1:
        for each in runs:
            _report_stage(request, each, messages)
    rows, windows = runs[0].outcome.counts.rows_in, runs[-1].outcome.windows
    counts = sum((each.outcome.counts for each in runs), Counts())
    see = "" if len(runs) > 1 else "see _rejected" if request.stdout is None else "which a folder as OUT would keep"
    cut = [] if cut_at is None else [f"the input was cut at {count_of(cut_at, 'row')} (--limit)"]
    words = [
        *_account(rows, windows, counts, see),
        *cut,
        f"{seconds:.1f} s",
        f"{count_of(round(rows / seconds), 'row')}/s",
    ]
    output = request.shown_output if request.stdout is None else "stdout"
    messages.summary(
        f"{', '.join(words)} -> {output}",
        **_fields(rows, windows, counts),
        **({} if cut_at is None else {"cut_at": cut_at}),
        seconds=round(seconds, 3),
        output=output,
    )


def _report_findings(request: JobRequest, run: StageRun, messages: Messages) -> None:
    outcome, which = run.outcome, stage_prefix(request, run.stage.name)
    strategy = outcome.strategy
    messages.detail(f"{which}{strategy.name}: {strategy.reason}", strategy=strategy.name)
    phases = ", ".join(f"{phase} {spent:.1f} s" for phase, spent in outcome.seconds.items())
    messages.detail(f"{which}{outcome.chunks} chunks, {outcome.slices} slices; {phases}", phases=outcome.seconds)
    if outcome.falls:
        messages.note(
            f"{which}the window's attribute goes down {count_of(outcome.falls, 'time')} in arrival order; "
            + with_stage_keys(request, "if that is not meant, say --order-by COLUMN"),
            falls=outcome.falls,
        )


def _report_stage(request: JobRequest, run: StageRun, messages: Messages) -> None:
    counts, windows, shown = run.outcome.counts, run.outcome.windows, run.stage_output.output.place.shown
    shown = "stdout" if shown == request.stdout else shown
    see = "which a folder as OUT would keep" if shown == "stdout" else f"see {shown}/{run.stage_output.sink.rejects_in}"
    text = stage_prefix(request, run.stage.name) + ", ".join(_account(counts.rows_in, windows, counts, see))
    output = shown if run.stage_output.is_own else None
    fields = _fields(counts.rows_in, windows, counts)
    messages.note(text + (f" -> {output}" if output else ""), stage=run.stage.name, **fields, output=output)


def _account(rows: int, windows: int, counts: Counts, see: str) -> list[str]:
    """Return the words for row counts; ``rows`` came in, ``windows`` came out, ``see`` says where the rejects are."""
    rejected = sum(counts.rejected.values())
    words = [f"{count_of(rows, 'row')} in", f"{count_of(windows - counts.panes_hidden, 'window')} out"]
    words += [f"{counts.panes_hidden:,} hidden"] if counts.panes_hidden else []
    words += [f"{rejected:,} {WORDS['rejected']}" + (f" ({reason_counts(counts.rejected)})" if rejected else "")]
    words += [see] if rejected and see else []
    rest = {"filtered": counts.filtered, "dropped_at_end": counts.dropped_at_end, "held": counts.held}
    return words + [f"{count:,} {WORDS[key]}" for key, count in rest.items() if count]


def _fields(rows: int, windows: int, counts: Counts) -> dict[str, Any]:
    return {
        "rows_in": rows,
        "windows_out": windows,
        "rejected": counts.rejected,
        "filtered": counts.filtered,
        "dropped_at_end": counts.dropped_at_end,
        "held": counts.held,
        "panes_hidden": counts.panes_hidden,
    }
