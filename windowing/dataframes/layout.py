"""How the rows of a DataFrame are laid out for a window: what decides partitions, their order, and the clock."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ..columns.sort_keys import is_sortable
from ..errors import ConfigError
from ..planning.plan import Plan
from ..planning.result_schema import MARK
from .sort_code import is_coarse


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of the rows of a window. As text it says what will happen.

    ``by_key``: whether rows of one key share a partition and partitions run side by side; else there is one partition.
    ``why``: the reason for one partition; empty where there are several.
    ``key``: the columns that decide the partition.
    ``order``: the columns that sort the rows of a key, or all rows.
    ``ties``: the columns that put rows in order that tie in these.
    ``coarse``: whether Spark sorts by codes alone, and tasks do the rest; else Spark sorts by the columns, too.
    ``clock``: the column whose largest value over all rows is read first; None: it is not needed.
    ``prepare``: whether expressions are computed before the rows are moved.
    ``columns``: the columns that are moved.
    """

    by_key: bool
    why: str
    key: tuple[str, ...]
    order: tuple[str, ...]
    ties: tuple[str, ...]
    coarse: bool
    clock: str | None
    prepare: bool
    columns: tuple[str, ...]

    def __str__(self) -> str:
        lines = ["expressions are computed before rows are moved"] if self.prepare else []
        lines += [f"the clock ends at the largest {self.clock} of all rows, which is read first"] if self.clock else []
        where = f"by {', '.join(self.key)}" if self.by_key else f"all rows in one, since {self.why}"
        lines.append(f"partitions: {where}")
        order = ", ".join([*self.key, *self.order])
        lines.append(f"order: {order}" + (f"; ties by {', '.join(self.ties)}" if self.ties else ""))
        return "\n".join(lines)


def layout_of(plan: Plan, arrival: str | None, mark: str | None) -> Layout:
    """Choose the layout of a window.

    ``arrival``: the column of arrival positions, if any. ``mark``: the column of marks, if any. Raises `ConfigError`
    where nothing orders the rows, or a column that would decide between rows that tie has no order.
    """
    why = _coupling(plan)
    by_key = not why
    computed = {column.name for column in plan.projection.computed}
    order = tuple(dict.fromkeys([*plan.sort, *([arrival] if arrival else [])]))
    if not order:
        raise ConfigError("rows of a DataFrame have no order of their own", "say order_by or arrival")
    key = plan.key if by_key else ()
    prepare = plan.projection.where is not None or bool(computed & {*key, *order, mark})
    marks = (mark, MARK if plan.reads_result else None) if plan.takes_marks else ()
    extra = (arrival, *marks)
    read = plan.columns if prepare else plan.projection.needs(plan.columns)
    columns = tuple(dict.fromkeys([*read, *(name for name in extra if name)]))
    ties = tuple(name for name in columns if name not in {*key, *order})
    types = {name: plan.projection.schema.field(name).type for name in (*order, *ties)}
    ties = tuple(name for name in ties if _is_decisive(name, types[name], arrival))
    coarse = by_key and is_coarse(types[order[0]]) and all(is_sortable(types[name]) for name in ties)
    clock = plan.order.columns[0] if by_key and plan.kind.needs_clock else None
    return Layout(by_key, why, key, order, ties, coarse, clock, prepare, columns)


def _is_decisive(name: str, dtype: pa.DataType, arrival: str | None) -> bool:
    """Whether rows that tie can be put in order by a column.

    Raises `ConfigError` where they cannot, and no ``arrival`` decides before it.
    """
    if not _has_map(dtype):
        return True
    if arrival is None:
        what = (
            f"rows that tie are put in order by the columns of the window, and {name!r} is {dtype}, which has no order"
        )
        raise ConfigError(what, "say arrival, a column that tells rows apart")
    return False


def _has_map(dtype: pa.DataType) -> bool:
    if pa.types.is_map(dtype):
        return True
    return pa.types.is_nested(dtype) and any(_has_map(dtype.field(i).type) for i in range(dtype.num_fields))


def _coupling(plan: Plan) -> str:
    """Return why the keys of a window cannot be apart; empty where they can."""
    if not plan.key:
        return "there is no key"
    if plan.takes_marks:
        return "marks end the windows of all keys"
    if plan.kind.has_watermark:
        return "there is one watermark for all keys"
    if plan.kind.eviction is not None:
        return "the eviction of a key depends on the others"
    if plan.options.empty == "mark":
        return "a tick without a window is one for all keys"
    return ""
