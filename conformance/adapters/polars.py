"""Polars answers a case: expressions over a data frame that is sorted by key and order."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import polars as pl

from wincli.conformance.kit import Answer, CannotSayError, Case, Rows
from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language import clock_policies as clocks
from wincli.windowing.language import conditions, joins, spec
from wincli.windowing.language import row_policies as rows
from wincli.windowing.language.enrichment import parse_windows

from .reading import BREAKS, as_other, ask, sees_window

_TIES = "rows of one instant see each other"
_NOTES = {
    "slope": "over one instant the slope is NaN",
    "wavg": "over weights of 0 the mean is NaN",
}  # fmt: skip
_FLOAT_NOTES = {
    "sum": "a sum of doubles rounds at each step", "product": "a product of doubles may overflow on the way",
    "min": "of NaN alone the smallest is NaN",
}  # fmt: skip


def answer(case: Case) -> Answer:
    """The rows of the answer. Raises `CannotSayError`."""
    log = _Log(case)
    found = log.answer()
    columns = [name for name in found.columns if name in case.columns]
    return Answer(columns, [list(row) for row in found.select(columns).rows()], log.note)


class _Log:
    """One case over a data frame."""

    def __init__(self, case: Case) -> None:
        self.case, self.asked = case, ask(case)
        self.note = self.asked.note
        self.key = list(self.asked.key)
        self.frame = _frame(case.given)
        self.counted = pl.len()

    def answer(self) -> pl.DataFrame:
        asked, case, window = self.asked, self.case, self.asked.window
        if "join" in case.spec:
            found = self.joined()
            if found is not None:
                return found
        elif case.spec.get("emit") in ("entered", "left"):
            raise CannotSayError("rows that enter and leave")
        else:
            self.prepare()
        if case.spec.get("group_by") and not isinstance(window, spec.Tumbling):
            raise CannotSayError("groups of panes that overlap")
        match window:
            case spec.Tumbling() if "ends" in case.spec:
                found = self.lasting()
            case spec.Tumbling():
                found = self.tumbling()
            case spec.TimeInterval():
                if window.discard_age or "lag" in case.spec or "min_gap" in case.spec:
                    raise CannotSayError("watermarks")
                found = self.cells(window.duration, window.period, window.offset)
            case spec.Sliding():
                found = self.sliding(window)
            case spec.Batched():
                found = self.batched(window)
            case spec.TableWindows():
                found = self.table()
            case _:
                raise CannotSayError("row patterns")
        for name, call in asked.calls.items():
            if getattr(call, "fills", False):
                filled = pl.col(name).forward_fill()
                found = found.with_columns(filled.over(self.key) if self.key else filled)
        return found.filter(self.expression(case.spec["having"])) if "having" in case.spec else found

    # --- rows -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        case = self.case
        self.frame = self.frame.sort([*self.key, *self.asked.order, "_arrival"], nulls_last=True)
        for name, text in (case.spec.get("let") or {}).items():
            self.frame = self.frame.with_columns(self.expression(text).alias(name))
        if "where" in case.spec:
            self.frame = self.frame.filter(self.expression(case.spec["where"]))
        if "distinct" in case.spec:
            column = case.spec["distinct"]
            if " " in column:
                raise CannotSayError("duplicates within a time or a number of rows")
            is_first = pl.struct([*self.key, column]).is_first_distinct()
            self.frame = self.frame.filter(is_first | pl.col(column).is_null())
        self.frame = self.frame.with_columns(self.of_key(pl.int_range(pl.len())).alias("_n"))

    def of_key(self, expression: pl.Expr) -> pl.Expr:
        return expression.over(self.key) if self.key else expression

    def expression(self, operand: Any) -> pl.Expr:
        """A condition in the words of SQL; ``lag`` becomes a column of its own."""
        text = operand if isinstance(operand, str) else str(operand)
        if sees_window(text):
            raise CannotSayError("conditions that see the open window")
        for number, found in enumerate(re.findall(r"lag\(([^()]*)\)", text)):
            name, _, back = found.partition(",")
            shifted = self.of_key(pl.sql_expr(name).shift(int(back or 1)))
            self.frame = self.frame.with_columns(shifted.alias(f"_lag{number}"))
            text = text.replace(f"lag({found})", f"_lag{number}")
        return pl.sql_expr(text)

    def before(self, expression: pl.Expr) -> pl.Expr:
        return self.of_key(expression.shift(1))

    def size(self, seconds: Fraction, column: str | None = None) -> Any:
        """Seconds as a difference of the clock."""
        if self.asked.is_time(column or self.asked.clock):
            return pl.duration(microseconds=int(seconds * 1_000_000))
        return float(seconds) if seconds.denominator != 1 else int(seconds)

    # --- aggregates -----------------------------------------------------------------------------------------------

    def aggregated(self, groups: Any) -> pl.DataFrame:
        """What a grouping makes of the calls."""
        own, later = [], []
        for name, call in self.asked.calls.items():
            if isinstance(call, spec.AggregateCall):
                own.append(self.call(call).alias(name))
                continue
            text = str(call.expression)
            for each in call.calls:
                part = f"_{len(own)}"
                own.append(self.call(each).alias(part))
                text = text.replace(f'"{each.name}"', part)
            later.append(pl.sql_expr(text).alias(name))
        bounds = [pl.col("_start").first(), pl.col("_end").first()] if "_start" in self.frame.columns else []
        found = groups.agg(*own, *bounds).with_columns(later)
        return found.rename({"_start": "window_start", "_end": "window_end"}) if bounds else found

    def call(self, call: spec.AggregateCall) -> pl.Expr:
        columns = [each if isinstance(each, str | Fraction) else self.argument(each) for each in call.arguments]
        if call.where is not None:
            condition = self.expression(call.where)
            columns = [each.filter(condition) if isinstance(each, pl.Expr) else each for each in columns]
            if not columns:
                return condition.fill_null(False).sum()
        of_floats = any(
            isinstance(each, spec.Column) and self.case.given.columns.get(each.name) == "float64"
            for each in call.arguments
        )
        self.note = (
            self.note or (_FLOAT_NOTES.get(call.function, "") if of_floats else "") or _NOTES.get(call.function, "")
        )
        if not columns and call.function == "count":
            return self.counted
        if not columns:
            raise CannotSayError(f"the aggregate {call.function}")
        if call.function == "sum" and (call.where is not None or self.has_nulls(call)):
            self.note = self.note or "the sum of no values is 0"
        return self.function(call.function, columns[0], columns[1:])

    def argument(self, argument: Any) -> pl.Expr:
        return pl.col(argument.name) if isinstance(argument, spec.Column) else self.expression(argument)

    def has_nulls(self, call: spec.AggregateCall) -> bool:
        names = [each.name for each in call.arguments if isinstance(each, spec.Column)]
        return any(name not in self.frame.columns or self.frame[name].null_count() for name in names)

    def function(self, name: str, x: pl.Expr, more: list[Any]) -> pl.Expr:
        known = {
            "count": x.count, "count_distinct": lambda: x.drop_nulls().n_unique(), "sum": x.sum, "mean": x.mean,
            "min": x.min, "max": x.max, "var": x.var, "stddev": x.std,
            "first": lambda: x.drop_nulls().first(), "last": lambda: x.drop_nulls().last(),
            "nth": lambda: x.drop_nulls().implode().list.get(int(more[0]), null_on_oob=True),
            "var_pop": lambda: x.var(ddof=0), "stddev_pop": lambda: x.std(ddof=0),
            "skew": lambda: x.skew(bias=False), "skew_pop": x.skew, "kurtosis": lambda: x.kurtosis(bias=False),
            "kurtosis_pop": x.kurtosis, "median": x.median,
            "quantile": lambda: x.quantile(float(more[0]), more[1] if len(more) > 1 else "linear"),
            "mad": lambda: (x - x.median()).abs().median(),
            "rank": lambda: x.rank(more[0] if more else "average").last().cast(pl.Float64),
            "mode": lambda: x.drop_nulls().mode(maintain_order=True).first(),
            "arg_min": lambda: x.get(more[0].arg_min()),
            "arg_max": lambda: x.get(more[0].arg_max()), "collect": x.drop_nulls,
            "collect_distinct": lambda: x.drop_nulls().unique(maintain_order=True),
            "wavg": lambda: (x * more[0]).sum() / more[0].filter(x.is_not_null()).sum(), "product": x.product,
            "bool_and": x.all, "bool_or": x.any, "string_join": lambda: x.str.join(more[0]),
            "range": lambda: x.max() - x.min(), "min_count": (x == x.min()).sum,
            "max_count": (x == x.max()).sum,
            "slope": lambda: (
                pl.cov(x, pl.col(self.asked.clock)) / pl.col(self.asked.clock).filter(x.is_not_null()).var()
            ),
        }  # fmt: skip
        if name not in known:
            raise CannotSayError(f"the aggregate {name}")
        return known[name]()

    # --- windows --------------------------------------------------------------------------------------------------

    def tumbling(self) -> pl.DataFrame:
        (first, *others) = policies = self.asked.policies
        if isinstance(first, clocks.Growing):
            raise CannotSayError("windows that come out as they grow")
        if isinstance(first, clocks.Cron):
            raise CannotSayError("cron expressions")
        if not others:
            match first:
                case clocks.Time(seconds):
                    return self.cells(seconds, seconds, self.asked.origin)
                case clocks.Calendar():
                    return self.calendar(first)
                case rows.Count(n):
                    return self.of_parts(pl.col("_n") // n)
                case conditions.From(opener, until) if until is not None:
                    opens, ends = self.expression(opener).fill_null(False), self.expression(until).fill_null(False)
                    begun = self.of_key(pl.when(opens).then(pl.col("_n")).forward_fill())
                    ended = self.of_key(pl.when(ends).then(pl.col("_n")).shift(1).forward_fill()).fill_null(-1)
                    self.frame = self.frame.with_columns(ended.alias("_w"), begun.alias("_e")).filter(
                        pl.col("_e") > pl.col("_w")
                    )
                    return self.of_parts(pl.col("_w"))
                case conditions.When(opener):
                    numbers = self.of_key(self.expression(opener).fill_null(False).cum_sum())
                    self.frame = self.frame.with_columns(numbers.alias("_w")).filter(pl.col("_w") > 0)
                    return self.of_parts(pl.col("_w"))
        breaks, is_in = pl.repeat(False, pl.len()), None
        for policy in policies:
            breaks = breaks | self.breaks(policy).fill_null(False)
            if isinstance(policy, conditions.While):
                is_in = self.expression(policy.condition).fill_null(False)
        self.frame = self.frame.with_columns(breaks.alias("_b"))
        self.frame = self.frame.with_columns(self.of_key(pl.col("_b").cum_sum()).alias("_w"))
        if is_in is not None:
            self.frame = self.frame.filter(is_in)
        return self.of_parts(pl.col("_w"))

    def breaks(self, policy: Any) -> pl.Expr:
        """Whether a row begins a window, as two neighbouring rows say."""
        match policy:
            case rows.Gap(name, by):
                return self.of_key(pl.col(name).diff()) > self.size(by, name)
            case rows.Changing("gap", name, by) if name is not None:
                return self.of_key(pl.col(name).diff()) > self.before(self.expression(by))
            case rows.Change(columns):
                found = pl.lit(False)
                for each in columns:
                    value = self.expression(each)
                    found = found | value.ne_missing(self.before(value))
                return found
            case rows.Punct(condition) if condition is not None:
                return self.before(self.expression(condition))
            case conditions.Split(condition):
                return self.expression(condition)
            case conditions.While(condition):
                return ~self.before(self.expression(condition)).fill_null(False)
            case clocks.Time(seconds):
                value = pl.col(self.asked.clock) // self.size(seconds)
                return value != self.before(value)
        raise CannotSayError(BREAKS.get(type(policy), type(policy).__name__.lower()))

    def of_parts(self, number: pl.Expr) -> pl.DataFrame:
        self.frame = self.frame.with_columns(number.alias("_w"))
        if self.case.spec.get("emit") == "rows":
            return self.frame
        if self.asked.order:
            clock, over = pl.col(self.asked.order[0]), [*self.key, "_w"]
            self.frame = self.frame.with_columns(
                clock.min().over(over).alias("_start"), clock.max().over(over).alias("_end")
            )
        return self.aggregated(self.frame.group_by([*self.key, "_w", *self.asked.group_by], maintain_order=True))

    def index(self) -> tuple[str, int]:
        """The clock as `group_by_dynamic` takes it, and how many of its units are a second."""
        clock = self.asked.clock
        kind = self.case.given.columns[clock]
        if kind == "float64":
            self.frame = self.frame.with_columns((pl.col(clock) * 1_000_000).round().cast(pl.Int64).alias("_t"))
        else:
            self.frame = self.frame.with_columns(pl.col(clock).alias("_t"))
        return clock, 1 if kind == "int64" else 1_000_000

    def cells(self, length: Fraction, period: Fraction, offset: Fraction) -> pl.DataFrame:
        if self.asked.option("empty"):
            return self.with_empty(self.size(length))
        if length != period:
            self.note = self.note or "windows that begin before the first row are left out"
        clock, scale = self.index()
        if any((each * scale).denominator != 1 for each in (length, period, offset)):
            scale = 1_000_000
            self.frame = self.frame.with_columns(pl.col("_t") * scale)
        unit = "us" if self.asked.is_time(clock) else "i"
        every, wide, moved = (f"{int(each * scale)}{unit}" for each in (period, length, offset % period))
        return self.dynamic(every, wide, moved, None if self.asked.is_time(clock) else scale)

    def with_empty(self, step: Any) -> pl.DataFrame:
        """Rows by the numbers of their windows, joined to all numbers between the first and the last of each key."""
        if "_w" not in self.frame.columns:
            self.frame = self.frame.with_columns((pl.col(self.asked.clock) // step).alias("_w"))
        groups = (
            self.frame.group_by(self.key, maintain_order=True)
            if self.key
            else self.frame.group_by(pl.lit(0).alias("_all"))
        )
        ends = groups.agg(pl.col("_w").min().alias("_first"), pl.col("_w").max().alias("_last"))
        every = (
            ends.with_columns(pl.int_ranges("_first", pl.col("_last") + 1).alias("_w"))
            .explode("_w")
            .select([*self.key, "_w"])
        )
        self.frame = every.join(self.frame, on=[*self.key, "_w"], how="left", maintain_order="left_right")
        self.frame = self.frame.with_columns(
            (pl.col("_w") * step).alias("_start"), ((pl.col("_w") + 1) * step).alias("_end")
        )
        self.counted = pl.col("_arrival").count()
        return self.aggregated(self.frame.group_by([*self.key, "_w"], maintain_order=True))

    def dynamic(self, every: str, period: str, offset: str, scale: int | None, back: Any = None) -> pl.DataFrame:
        self.frame = self.frame.drop_nulls("_t").sort("_t", maintain_order=True)
        groups = self.frame.group_by_dynamic(
            "_t", every=every, period=period, offset=offset, closed="right" if self.asked.is_right else "left",
            group_by=[*self.key, *self.asked.group_by] or None, include_boundaries=True,
        )  # fmt: skip
        found = self.aggregated(groups)
        low, high = pl.col("_lower_boundary"), pl.col("_upper_boundary")
        if scale is not None and scale != 1:
            low, high = low / scale, high / scale
        if back is not None:
            low, high = back(low), back(high)
        return found.with_columns(low.alias("window_start"), high.alias("window_end"))

    def calendar(self, window: clocks.Calendar) -> pl.DataFrame:
        if self.asked.option("empty"):
            raise CannotSayError("windows without rows")
        clock, _ = self.index()
        is_zoned = "UTC" in self.case.given.columns[clock]
        if is_zoned:
            self.frame = self.frame.with_columns(pl.col("_t").dt.convert_time_zone(window.tz))
        every = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}[window.unit]
        offset = f"{window.at.hour}h{window.at.minute}m" if window.start == "mon" else "-1d"
        if window.start not in ("mon", "sun"):
            raise CannotSayError("a week that begins on another day")
        self.note = self.note or "an offset is added to midnight, whatever the clocks do in between"
        back = (lambda each: each.dt.convert_time_zone("UTC")) if is_zoned else None
        return self.dynamic(every, every, offset, None, back)

    def lasting(self) -> pl.DataFrame:
        (policy,) = self.asked.policies
        if not isinstance(policy, clocks.Time) or self.asked.is_time(self.asked.clock):
            raise CannotSayError("local days that a row overlaps")
        step, start, end = self.size(policy.seconds), pl.col(self.asked.clock), pl.col(self.asked.option("ends"))
        low = start // step
        high = pl.max_horizontal(low, -(-end // step) - 1)
        self.frame = self.frame.with_columns(pl.int_ranges(low, high + 1).alias("_w")).explode("_w")
        inside = pl.min_horizontal(end, (pl.col("_w") + 1) * step) - pl.max_horizontal(start, pl.col("_w") * step)
        share = pl.when(end == start).then(1.0).otherwise(inside / (end - start))
        self.frame = self.frame.with_columns(
            inside.alias("_overlap"), share.alias("_share"), (pl.col("_w") * step).alias("_start"),
            ((pl.col("_w") + 1) * step).alias("_end"),
        )  # fmt: skip
        if self.asked.option("empty"):
            return self.with_empty(step)
        return self.aggregated(self.frame.group_by([*self.key, "_w"], maintain_order=True))

    def sliding(self, window: spec.Sliding) -> pl.DataFrame:
        if self.case.spec.get("emit") == "rows":
            raise CannotSayError("the rows of panes that overlap")
        evict, trigger = window.evict, window.trigger
        is_last = self.of_key(pl.col("_n") == pl.len() - 1)
        match trigger:
            case rows.Count(m):
                fires = ((pl.col("_n") + 1) % m == 0) | is_last
            case conditions.When(condition):
                fires = self.expression(condition).fill_null(False) | is_last
            case clocks.Time(seconds) if isinstance(evict, clocks.Time):
                self.note = "a grid has no last window that the end of the data cuts, and goes on behind it"
                found = self.cells(evict.seconds, seconds, evict.seconds % seconds)
                return found.drop("window_start", "window_end")
            case _:
                raise CannotSayError("a trigger by time or by a rise over such a window")
        is_partial = self.asked.option("partial", False)
        match evict:
            case rows.Count(n) if n > 0:
                fires = fires if is_partial else fires & (pl.col("_n") >= n - 1)
                return self.rolled("_n", f"{n}i", "right", fires)
            case clocks.Time(seconds):
                self.note = self.note or _TIES
                return self.rolled(*self.within(seconds), "both", fires)
            case rows.Delta(name, by) if is_partial and (name,) == self.asked.order:
                self.note = self.note or _TIES
                return self.rolled(*self.within(by), "both", fires)
        raise CannotSayError(
            "an eviction by a value that may fall" if isinstance(evict, rows.Delta) else "a window that holds nothing"
        )

    def within(self, seconds: Fraction) -> tuple[str, str]:
        clock, scale = self.index()
        if (seconds * scale).denominator != 1:
            raise CannotSayError("parts of a unit")
        return "_t", f"{int(seconds * scale)}{'us' if self.asked.is_time(clock) else 'i'}"

    def rolled(self, index: str, period: str, closed: Any, fires: pl.Expr) -> pl.DataFrame:
        """`rolling` makes a pane at each row; of these the ones that fire come out."""
        self.frame = self.frame.with_columns(fires.alias("_fires"))
        if self.asked.order:
            self.frame = self.frame.with_columns(pl.col(self.asked.order[0]).alias("_clock"))
        groups = self.frame.rolling(index, period=period, closed=closed, group_by=self.key or None)
        own = [
            self.call(call).alias(name)
            for name, call in self.asked.calls.items()
            if isinstance(call, spec.AggregateCall)
        ]
        if self.asked.order:
            own += [pl.col("_clock").first().alias("window_start"), pl.col("_clock").last().alias("window_end")]
        found = groups.agg(*own)
        return found.with_columns(self.frame["_fires"]).filter(pl.col("_fires"))

    def batched(self, window: spec.Batched) -> pl.DataFrame:
        if window.within is not None:
            raise CannotSayError("rows that leave by time without a new one")
        if window.every is not None or window.unique is not None or window.partition_by:
            raise CannotSayError("lots of rows, or the newest of each value")
        return self.rolled("_n", f"{window.retain or self.frame.height + 1}i", "right", pl.lit(True))

    def table(self) -> pl.DataFrame:
        request = parse_windows(self.asked.option("windows"), False)
        own = _frame(self.case.tables[request.name]).rename({"_arrival": "_w"})
        taken = {(each.name or f"{request.name}_{each.column}"): each.column for each in request.take or ()}
        if request.take is None:
            taken = {f"{request.name}_{name}": name for name in own.columns}
        own = own.rename({name: f"w_{name}" for name in own.columns if name != "_w"})
        start, end, clock = pl.col(f"w_{request.start}"), pl.col(f"w_{request.end}"), pl.col(self.asked.clock)
        inside = [clock > start, clock <= end] if self.asked.is_right else [clock >= start, clock < end]
        if "ends" in self.case.spec:
            inside = [clock < end, start < pl.col(self.asked.option("ends"))]
        if self.asked.option("empty"):
            raise CannotSayError("windows without rows")
        on = [pl.col(f"w_{pair.right}") == pl.col(pair.left) for pair in request.keys]
        frame = self.frame.join_where(own, *on, *inside).sort("_n")
        if "ends" in self.case.spec:
            overlap = pl.min_horizontal(pl.col(self.asked.option("ends")), end) - pl.max_horizontal(clock, start)
            frame = frame.with_columns(overlap.alias("_overlap"))
        self.frame = frame.with_columns(
            start.alias("_start"),
            end.alias("_end"),
            *(pl.col(f"w_{column}").alias(name) for name, column in taken.items() if name in self.case.columns),
        )
        groups = [*self.key, "_w", *(name for name in taken if name in self.case.columns)]
        return self.aggregated(self.frame.group_by(groups, maintain_order=True))

    # --- joins ----------------------------------------------------------------------------------------------------

    def joined(self) -> pl.DataFrame | None:
        """Pairs; None where both logs have become one."""
        asked, case = self.asked, self.case
        request, window = joins.parse_join(asked.option("join")), asked.window
        name = request.name
        other = _frame(case.tables[name] if case.tables else case.given)
        if request.where is not None:
            other = other.filter(pl.sql_expr(str(request.where)))
        keys = [(pair.left, pair.right) for pair in request.keys] or [(each, each) for each in asked.key]
        orders = [(pair.left, pair.right) for pair in request.orders] or [(each, each) for each in asked.order]
        right = other.rename({each: f"{name}_{each}" for each in other.columns if each != "_arrival"}).rename(
            {"_arrival": "_r"}
        )
        if request.how == "union":
            self.union(name, keys, orders, right, "strict" in case.spec["join"])
            return None
        left = self.frame.rename({"_arrival": "_l"})
        if "where" in case.spec:
            left = left.filter(pl.sql_expr(case.spec["where"]))
        match = [pl.sql_expr(str(parse_expression(case.spec["match"])))] if "match" in case.spec else []
        if isinstance(window, spec.SideWindows):
            window = as_other(window)
        one, two = pl.col(orders[0][0]), pl.col(f"{name}_{orders[0][1]}")
        equal = [pl.col(a) == pl.col(f"{name}_{b}") for a, b in keys]
        if isinstance(window, joins.At):
            return self.asof(window, request, left, right, keys, match)
        if isinstance(window, joins.Around):
            if window.prevailing:
                raise CannotSayError("a range with the row that prevails before it")
            low, high = self.size(window.before, orders[0][0]), self.size(window.after, orders[0][0])
            left = left.with_columns((one - low).alias("_low"), (one + high).alias("_high"))
            on = [*equal, two >= pl.col("_low"), two <= pl.col("_high")]
        elif isinstance(window, spec.Tumbling) and isinstance(window.policy, clocks.Time):
            step = self.size(window.policy.seconds)
            left, right = left.with_columns((one // step).alias("_w")), right.with_columns((two // step).alias("_rw"))
            on = [*equal, pl.col("_w") == pl.col("_rw")]
        else:
            raise CannotSayError("a session or a count over two tables")
        pairs = left.join_where(right, *on).filter(*match) if match else left.join_where(right, *on)
        lonely = {"left": [0], "right": [1], "full": [0, 1], "anti": [0]}.get(request.how, [])
        alone = [
            (left.join(pairs, on="_l", how="anti"), right.join(pairs, on="_r", how="anti"))[side] for side in lonely
        ]
        if request.how == "semi":
            pairs = left.join(pairs, on="_l", how="semi")
        found = pl.concat(alone if request.how == "anti" else [pairs, *alone], how="diagonal")
        for a, b in keys:
            if f"{name}_{b}" in found.columns:
                found = found.with_columns(pl.coalesce(a, f"{name}_{b}").alias(a))
        if "_w" in found.columns:
            cell = pl.coalesce("_w", "_rw") if "_rw" in found.columns else pl.col("_w")
            found = found.with_columns((cell * step).alias("window_start"), ((cell + 1) * step).alias("window_end"))
        if not asked.calls:
            return found
        by = [each for each in case.columns if each in found.columns and each not in asked.calls]
        by = [*by, *(["_l"] if "_w" not in found.columns else [])]
        self.frame = found
        self.counted = pl.col("_r").count()
        return self.aggregated(found.group_by(by, maintain_order=True))

    def asof(
        self, window: joins.At, request: joins.Join, left: Any, right: Any, keys: Any, match: list[pl.Expr]
    ) -> pl.DataFrame:
        """`join_asof`, once for each offset."""
        name, clock = request.name, self.asked.clock
        two = next((f"{name}_{pair.right}" for pair in request.orders), f"{name}_{clock}")
        parts = []
        for offset in window.offsets:
            asked = left.with_columns(
                (pl.col(clock) + self.size(offset)).alias("_t"), pl.lit(float(offset)).alias(f"{name}_offset")
            ).sort("_t")
            pairs = asked.join_asof(
                right.sort(two, maintain_order=True), left_on="_t", right_on=two, strategy="backward",
                by_left=[a for a, _ in keys] or None, by_right=[f"{name}_{b}" for _, b in keys] or None,
                tolerance=None if window.within is None else int(window.within), allow_exact_matches=not request.strict,
                coalesce=False, check_sortedness=False,
            )  # fmt: skip
            own = [each for each in right.columns if each in pairs.columns]
            for condition in match:
                pairs = pairs.with_columns(pl.when(condition).then(pl.col(each)).alias(each) for each in own)
            parts.append(pairs if request.how == "left" else pairs.filter(pl.col("_r").is_not_null()))
        return pl.concat(parts)

    def union(self, name: str, keys: Any, orders: Any, right: pl.DataFrame, strict: bool) -> None:
        """The rows of both frames, those of the right first where times are equal."""
        same = {f"{name}_{two}": one for one, two in [*keys, *orders]}
        first, second = (0, 1_000_000) if strict else (1_000_000, 0)
        left = self.frame.with_columns(pl.lit("left").alias("_side"), pl.col("_arrival") + first)
        right = right.rename({**same, "_r": "_arrival"}).with_columns(
            pl.lit("right").alias("_side"), pl.col("_arrival") + second
        )
        self.frame = pl.concat([left, right], how="diagonal")
        self.key = [one for one, _ in keys]
        self.prepare()


def _frame(given: Rows) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(given.table()))
    return frame.with_columns(pl.int_range(pl.len()).alias("_arrival"))
