"""An expression with the types of its columns: what is computed (section 11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as t

from .syntax import Expression

if TYPE_CHECKING:  # what binds and computes is loaded where there is an expression: few runs have one
    from .steps import Mask, Program


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of an expression for some rows.

    ``values``: (n,), of the type of the expression; null for a row that failed.
    ``failures``: bool (n,), the rows for which it failed; None if there is none.
    ``details``: string (number of failed rows,), why each of them failed, in the order of the rows.
    """

    values: pa.Array
    failures: Mask | None
    details: pa.Array


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression that is bound to columns. It pickles, and computes without the SQL parser.

    ``text``: the canonical text of the expression.
    ``type``: the type of its values; that of ``NULL`` is int32, that of a column without a type stays null.
    ``columns``: the columns that it reads.
    ``program``: what it computes.
    """

    text: str
    type: pa.DataType
    columns: tuple[str, ...]
    program: Program = field(hash=False)

    def evaluate(self, rows: pa.Table | pa.RecordBatch) -> Evaluation:
        """Compute the expression for rows. ``rows``: a table or a batch with at least ``columns``.

        A row for which it fails, by a cast, an overflow or a division of integers by zero, does not raise.
        """
        from .steps import Frame, blank, run_array  # noqa: PLC0415 - see above

        frame = Frame(rows)
        values = run_array(self.program, frame)
        mask = frame.failures.mask
        if mask is not None:
            values = blank(values, mask)
        return Evaluation(values, mask, frame.failures.details())


def bind(expression: Expression, schema: pa.Schema) -> BoundExpression:
    """Bind an expression to the columns of a schema. Types, nulls, divisions and rounding are those of DuckDB.

    Raises `SpecError`, which shows the place, for an unknown column or function and for types that do not go together.
    """
    from .binder import bind_node  # noqa: PLC0415 - see above
    from .scope import Scope  # noqa: PLC0415

    scope = Scope(expression, schema)
    value = bind_node(scope, expression.root)
    if value.is_null and t.is_null(value.type):
        value = scope.constant(None, pa.int32(), expression.root)
    return BoundExpression(expression.text, value.type, expression.columns, scope.program(value))


def bind_condition(expression: Expression, schema: pa.Schema) -> BoundExpression:
    """Bind an expression as `bind` does, and give booleans: a number is true unless it is 0.

    Raises `SpecError` also where its values are no conditions, such as timestamps.
    """
    from .binder import bind_node  # noqa: PLC0415 - see above
    from .operators import condition  # noqa: PLC0415
    from .scope import Scope  # noqa: PLC0415

    scope = Scope(expression, schema)
    value = condition(scope, bind_node(scope, expression.root))
    return BoundExpression(expression.text, value.type, expression.columns, scope.program(value))
