"""The state of batches as the one table that users keep, and back: bound to a plan, so another job is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from ..arguments import Clock, Rows, as_table, clock_measure
from ..clock.watermark import LEVEL, POS
from ..columns.arrays import combined, measure_type
from ..errors import ConfigError
from ..planning.identity import check_goes_on, check_types, differences, identity_of, known_columns, state_types
from ..planning.plan import Plan
from ..scan.lag_rows import NO_INPUT
from ..scan.row_validation import clock_column, retyped_belief, retyped_watermark
from ..state.carry import Carry, Registers
from ..state.one_table import (
    NEXT,
    OF_STATE,
    PART,
    PARTS,
    REGISTERS,
    ROWS,
    STATE,
    belief_type,
    check_columns,
    conform,
    job_of,
    keys_and_rows,
    no_registers,
    registers_of,
    state_table,
)
from ..state.state_tables import LAST, RANK, SHOWN, read_state
from ..state.state_types import StateTypes
from ..state.window_state import baseline_type
from ..support.column_types import common_type, plain

NEW = "new"
PriorState: TypeAlias = Rows | Literal["new"]
"""A state that windows go on from: the table that the call before returned, or ``"new"`` for the first."""
_SHOWN = "the state"
FORMAT = 1
"""The format of the table of a state; goes up when a column changes its meaning."""
_BEGIN = f'give the job that made it, or begin with state="{NEW}"'


@dataclass(frozen=True, slots=True)
class StateForm:
    """The form of the states of a window.

    ``schema``: their columns (docs/state.md#as-one-table).
    ``job``: what decides the windows, as JSON.
    """

    schema: pa.Schema
    job: str
    plan: Plan

    def table(self, carry: Carry) -> pa.Table:
        """Return a carry as the table that users keep."""
        return state_table(self.schema, self.job, carry)

    def types_of(self, job: str | None) -> StateTypes:
        """Return the types that a state gets. Raises `ConfigError`, with the differences, where it is of another job.

        ``job``: its identity, as JSON; None: the state says none.
        """
        if job is None:
            raise no_registers()
        was, now = json.loads(job), json.loads(self.job)
        if was.get("format") != FORMAT:
            raise no_such_format(was.get("format"))
        if changes := list(differences(was, now)):
            raise ConfigError(f"the state is of another job: {'; '.join(changes)}", _BEGIN)
        check_types(was, now, _SHOWN)
        return state_types(self.plan, was, _SHOWN)

    def read(self, rows: Rows) -> Carry:
        """Return the state that a table holds. Raises as `types_of` does, and `ConfigError` for no whole state."""
        table = as_table(rows)
        check_columns(table.column_names)
        types = self.types_of(job_of(table))
        columns = {name: combined(table.column(name)) for name in table.column_names}
        try:
            table = conform(columns, self.schema, table.num_rows)
        except pa.ArrowInvalid:  # look for the value that a type of now does not hold
            keys, rows_of_keys, _ = keys_and_rows(pa.table(columns), self.plan.key)
            types.retyped(keys)
            types.retyped(rows_of_keys)
            raise
        return replace(self.keys(table), registers=self.registers(table))

    def keys(self, table: pa.Table) -> Carry:
        """Return what a table of ``schema`` says of keys."""
        plan = self.plan
        keys, rows, next_rows = keys_and_rows(table, plan.key)
        if not plan.key and not keys.num_rows:
            return Carry()
        return Carry(state=read_state(keys, rows, plan.key, plan.sort, plan.values), next_rows=next_rows)

    def registers(self, table: pa.Table) -> Registers:
        """Return what a state says of all keys, in the types of the job of now. Raises as `types_of` does."""
        types, found = self.types_of(job_of(table)), registers_of(table)
        clock = types.measure(clock_column(self.plan), found.clock)
        watermark = retyped_watermark(self.plan, types, found.watermark)
        return replace(found, clock=clock, watermark=watermark, belief=retyped_belief(self.plan, types, found.belief))


def no_such_format(found: object) -> ConfigError:
    """Return the error for a state of another format."""
    return ConfigError(f"the state has format {found}, and this wincli knows {FORMAT}", "use the version that wrote it")


def form_of(plan: Plan) -> StateForm:
    """Return the form of the states of a window. Raises `ConfigError` where a key column has the name of one of it."""
    return StateForm(_schema(plan), json.dumps({"format": FORMAT, **identity_of(plan)}), plan)


def kept_before(
    plan: Plan, state: PriorState | None, clock: Clock | None, since: Clock | None, watermarks: object = None
) -> Carry:
    """Return where a call of `wincli.aggregate` begins, with its arguments.

    Raises as `check_arguments` and `StateForm.read` do.
    """
    if state is not None:
        check_arguments(plan, state, clock, since, watermarks)
    if state is None or isinstance(state, str):
        return Carry(Registers(clock=clock_measure(plan, since)))
    return form_of(plan).read(state)


def check_arguments(
    plan: Plan, state: PriorState, clock: Clock | None, since: Clock | None, watermarks: object = None
) -> None:
    """Raise `ConfigError` for arguments of a call that do not go with a state."""
    check_goes_on(plan)
    form_of(plan)
    if isinstance(state, str) and state != NEW:
        raise ConfigError(f"state: {state!r} is no state", f'give the table that a call has returned, or "{NEW}"')
    if watermarks is not None:
        raise ConfigError("watermarks do not go with a state", "let them follow from the rows")
    if clock is not None and plan.options.at_end == "hold":
        raise ConfigError("the clock goes on with the rows of the next call", "leave clock= out, or flush at the end")
    if since is not None and not isinstance(state, str):
        raise ConfigError("the state says where the clock stands", "leave since= out")


def with_known_columns(rows: Rows, state: PriorState | None) -> Rows:
    """Return rows in the types that a state knows, and with the columns of it that they lack, which are null.

    ``rows``: a table, or a reader of batches. Raises `ConfigError` where a column has a type that has nothing in common
    with that of the state, or a value that the type of both does not hold.
    """
    if state is None or isinstance(state, str):
        return rows
    table = as_table(state)
    check_columns(table.column_names)
    job = job_of(table)
    known = pa.schema([]) if job is None else known_columns(json.loads(job))
    if not isinstance(rows, pa.RecordBatchReader):
        table = as_table(rows)
        return _in(table, joined(table.schema, known))
    schema = joined(as_table(rows.schema.empty_table()).schema, known)
    batches = (each for batch in rows for each in _in(as_table(pa.table(batch)), schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def joined(own: pa.Schema, known: pa.Schema) -> pa.Schema:
    """Return columns of rows in the types that they have in common with those that a state knows, then its others.

    Raises `ConfigError` where there is no such type.
    """
    fields = []
    for column in own:
        before = known.field(column.name).type if column.name in known.names else pa.null()
        wide = common_type(before, plain(column.type))
        if wide is None:
            what = f"column {column.name!r} is {before} in the state and {column.type} in the rows"
            raise ConfigError(what, "cast it before, so that both are of one type")
        fields.append(column if wide == plain(column.type) else column.with_type(wide))
    return pa.schema([*fields, *(column for column in known if column.name not in own.names)])


def _in(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    if rows.schema == schema:
        return rows
    types = StateTypes(schema, {}, "the rows")
    return types.retyped(types.with_all(rows, schema.names)).select(schema.names)


def _schema(plan: Plan) -> pa.Schema:
    types = plan.projection.schema
    for name in plan.key:
        if name in OF_STATE:
            raise ConfigError(f"the key column {name!r} has the name of a column of states", "rename it")
    key = [pa.field(name, types.field(name).type) for name in plan.key]
    held = [pa.field(name, types.field(name).type) for name in plan.values if name not in plan.key]
    row_state = [(RANK, pa.int64()), (SHOWN, pa.bool_()), (LAST, pa.bool_())]
    rows = pa.list_(pa.struct([*held, (POS, pa.int64()), *row_state]))
    of_key = pa.struct(_key_fields(plan))
    return pa.schema([*key, (PART, pa.int64()), (STATE, of_key), (ROWS, rows), (REGISTERS, _register_type(plan))])


def _key_fields(plan: Plan) -> list[pa.Field]:
    types = plan.projection.schema
    names = ("rows", "begin", "windows", PARTS, NEXT)
    fields = [*(pa.field(name, pa.int64()) for name in names), pa.field("full", pa.bool_())]
    baseline = plan.kind.needs.baseline
    fields += [] if baseline is None else [pa.field("baseline", baseline_type(baseline, types))]
    fields += [] if plan.options.operator is None else [pa.field("operator", pa.string())]
    if plan.looks_back:
        read = list(plan.looked_back) or [(NO_INPUT, pa.bool_())]
        fields.append(pa.field("newest", pa.list_(pa.struct(read))))
    if plan.ongoing:
        fields.append(pa.field("ongoing", pa.struct([*plan.ongoing.items()])))
    return fields


def _register_type(plan: Plan) -> pa.DataType:
    types, order = plan.projection.schema, plan.order.columns
    event_time = plan.options.event_time if plan.kind.needs.watermark else None
    clock = clock_column(plan)
    fields = [pa.field("job", pa.string()), pa.field("rows", pa.int64())]
    fields += [pa.field("clock", _measure_type(types, clock)), pa.field("watermark", _measure_type(types, event_time))]
    fields += [pa.field("position", pa.struct([types.field(name) for name in order]))] if order else []
    if event_time is not None:
        fields += [pa.field("belief", belief_type(_measure_type(types, event_time)))] if plan.lets_vote else []
        sort = [types.field(name) for name in plan.sort]
        fields.append(pa.field("advances", pa.list_(pa.struct([*sort, (POS, pa.int64()), (LEVEL, pa.int64())]))))
    if plan.windows is not None:
        fields.append(pa.field("windows", pa.list_(pa.struct(list(plan.windows.schema)))))
    return pa.struct(fields)


def _measure_type(types: pa.Schema, clock: str | None) -> pa.DataType:
    """Return the type of measures of a clock column; int64 where there is none."""
    return pa.int64() if clock is None else measure_type(types.field(clock).type)
