"""``wincli run --confirm-effect``: a run goes on only if its effect is as the user allows."""

from __future__ import annotations

import pyarrow as pa

from ....windowing.errors import DataError, SpecError
from ....windowing.expressions.binding import BoundExpression, bind_condition
from ....windowing.expressions.syntax import parse_expression
from ...planning.request import JobRequest
from ...run.context import RunContext
from .effect import Effect, effect_of

NUMBERS = ("changed", "added", "removed", "units_changed", "units_new", "units_run")


def confirm(request: JobRequest, context: RunContext) -> None:
    """Compute the effect of a job, and return if its ``confirm_effect`` is true of it.

    Raises `DataError` where it is not, `SpecError` for a mistake in it, and what `effect_of` raises.
    """
    text = request.job.confirm_effect
    assert text is not None
    condition = _bound(text)
    effect = effect_of(request, context, head=0)
    found = condition.evaluate(pa.table({name: [number] for name, number in effect.numbers.items()}))
    if found.values[0].as_py() is not True:
        what = f"the effect is not as --confirm-effect {text!r} allows: {effect_words(effect)}; nothing was published"
        raise DataError(what, "look at it with wincli plan --effect, then allow it, or mend the input")
    context.messages.note(f"the effect is as allowed: {effect_words(effect)}", **effect.numbers)


def effect_words(effect: Effect) -> str:
    """Return the numbers of an effect in words."""
    return ", ".join(f"{name} is {number:,}" for name, number in effect.numbers.items())


def _bound(text: str) -> BoundExpression:
    schema = pa.schema([(name, pa.int64()) for name in NUMBERS])
    try:
        return bind_condition(parse_expression(text), schema)
    except SpecError as error:
        raise SpecError(f"--confirm-effect: {error.what}", text, error.span, error.do) from None
