"""Joins over windows as queries: joins by range, by the cell of a grid, and as-of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wincli.conformance.kit import CannotSayError
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language import clock_policies as clocks
from wincli.windowing.language import joins, spec

from .query import Query
from .reading import as_other
from .windows import cell_of, of_window


def joined(query: Query) -> str:
    """The last part of the query of a join. Raises `CannotSayError`."""
    asked, case = query.asked, query.case
    request, window = joins.parse_join(asked.option("join")), asked.window
    name, other = request.name, case.tables[request.name].columns if case.tables else case.given.columns
    keys = [(pair.left, pair.right) for pair in request.keys] or [(each, each) for each in asked.key]
    orders = [(pair.left, pair.right) for pair in request.orders] or [(each, each) for each in asked.order]
    renamed = [f"{query.q(each)} AS {query.q(f'{name}_{each}')}" for each in other]
    where = ""
    if request.where is not None:
        own = query.columns
        query.columns = list(other)
        where = f" WHERE {query.expression(request.where)}"
        query.columns = own
    source = query.q(name) if case.tables else "log"
    query.part("r", f"SELECT {', '.join(renamed)}, _arrival AS _r_arrival FROM {source}{where}")
    if request.how == "union":
        return _union(query, name, keys, orders, other)
    filters = f" WHERE {query.expression(parse_expression(case.spec['where']))}" if "where" in case.spec else ""
    query.part("l", f"SELECT *, _arrival AS _l_arrival FROM log{filters}")
    query.columns += [f"{name}_{each}" for each in other]
    on = [f"l.{query.q(one)} = r.{query.q(f'{name}_{two}')}" for one, two in keys]
    match = [f"({query.expression(parse_expression(case.spec['match']))})"] if "match" in case.spec else []
    one, two = query.measure(orders[0][0]), _other_measure(query, name, orders[0][1], other)
    if isinstance(window, spec.SideWindows):
        window = as_other(window)
    if isinstance(window, joins.At):
        return query.dialect.asof(query, (window, request, on, match, one, two))
    if isinstance(window, joins.Around):
        if window.prevailing:
            raise CannotSayError("a range with the row that prevails before it")
        low, high = query.amount(window.before, orders[0][0]), query.amount(window.after, orders[0][0])
        on.append(f"{two} BETWEEN {one} - ({low}) AND {one} + ({high})")
        cell = None
    elif isinstance(window, spec.Tumbling) and isinstance(window.policy, clocks.Time):
        cell = (
            cell_of(query, window.policy.seconds, asked.origin, one),
            cell_of(query, window.policy.seconds, asked.origin, two),
        )
        on.append(f"{cell[0]} = {cell[1]}")
    else:
        raise CannotSayError("a session or a count over two tables")
    on += match
    return _pairs(query, request.how, on, keys, cell, name)


def _pairs(query: Query, how: str, on: list[str], keys: Any, cell: Any, name: str) -> str:
    sides = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
    merged = {one: f"coalesce(l.{query.q(one)}, r.{query.q(f'{name}_{two}')})" for one, two in keys}
    is_half = how in ("semi", "anti")
    shown = [
        (f"{merged[each]} AS {query.q(each)}" if each in merged and not is_half else query.q(each))
        for each in query.columns if not (is_half and each.startswith(f"{name}_"))
    ]  # fmt: skip
    shown += ["_l_arrival"] if is_half else ["_l_arrival", "_r_arrival AS _arrival"]
    if cell is not None:
        (policy,) = query.asked.policies
        here = cell[0] if is_half else f"coalesce({cell[0]}, {cell[1]})"
        step = query.amount(policy.seconds)
        shown += [f"({here}) * {step} + {query.amount(query.asked.origin)} AS {query.q('window_start')}"]
        shown += [f"(({here}) + 1) * {step} + {query.amount(query.asked.origin)} AS {query.q('window_end')}"]
    if is_half:
        query.part("partners", f"SELECT l._l_arrival AS _p FROM l JOIN r ON {' AND '.join(on)}")
        is_there = f"_l_arrival {'NOT ' if how == 'anti' else ''}IN (SELECT _p FROM partners)"
        query.part("pairs", f"SELECT {', '.join(shown)} FROM l WHERE {is_there}")
    else:
        query.part("pairs", f"SELECT {', '.join(shown)} FROM l {sides[how]} r ON {' AND '.join(on)}")
    told = [each for each in query.case.columns if each not in ("window", "closed_by")]
    if not query.asked.calls:
        bounds = cell is not None
        wanted = [each for each in told if bounds or each not in ("window_start", "window_end")]
        return f"SELECT {', '.join(query.q(each) for each in wanted)} FROM pairs"
    by = [each for each in told if each not in query.asked.calls]
    groups = [query.q(each) for each in by] + (["_l_arrival"] if cell is None else [])
    return f"SELECT {', '.join([*map(query.q, by), *query.aggregates()])} FROM pairs GROUP BY {', '.join(groups)}"


def _other_measure(query: Query, name: str, column: str, other: Mapping[str, str]) -> str:
    quoted = query.q(f"{name}_{column}")
    return query.dialect.micros(quoted) if other[column].startswith("timestamp") else quoted


def _union(query: Query, name: str, keys: Any, orders: Any, other: Mapping[str, str]) -> str:
    """The rows of both tables, those of the right first where times are equal."""
    same = {f"{name}_{two}": one for one, two in [*keys, *orders]}
    left = [query.q(each) for each in query.columns]
    right = [
        next(
            (query.q(two) for two, one in same.items() if one == each),
            query.dialect.null(query.case.given.columns[each]),
        )
        for each in query.columns
    ]
    more = [f"{name}_{each}" for each in other if f"{name}_{each}" not in same]
    left += [f"{query.dialect.null(other[each.removeprefix(f'{name}_')])} AS {query.q(each)}" for each in more]
    right = [f"{text} AS {query.q(each)}" for text, each in zip(right, query.columns, strict=True)] + [
        query.q(each) for each in more
    ]
    first, second = ("0", "1000000") if "strict" in query.asked.option("join") else ("1000000", "0")
    query.part(
        "sides",
        f"SELECT {', '.join(left)}, 'left' AS _side, _arrival + {first} AS _arrival FROM log "
        f"UNION ALL SELECT {', '.join(right)}, 'right' AS _side, _r_arrival + {second} AS _arrival FROM r",
    )
    query.columns += [*more, "_side"]
    query.key = [query.q(one) for one, _ in keys]
    query.base("sides")
    return of_window(query, query.asked.window)
