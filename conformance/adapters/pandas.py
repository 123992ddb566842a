"""pandas answers a case: groups, `resample`, `rolling` and `merge_asof` over a data frame in order."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pyarrow as pa

from wincli.conformance.kit import Answer, CannotSayError, Case, Rows
from wincli.windowing.language import clock_policies as clocks
from wincli.windowing.language import conditions, joins, spec
from wincli.windowing.language import row_policies as rows
from wincli.windowing.language.enrichment import parse_windows

from .reading import BREAKS, as_other, ask, sees_window

_TYPES = {pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype(), pa.bool_(): pd.BooleanDtype()}
_CALENDAR = {
    "day": ("D", {"days": 1}), "week": ("W-MON", {"weeks": 1}), "month": ("MS", {"months": 1}),
    "quarter": ("QS", {"months": 3}), "year": ("YS", {"years": 1}),
}  # fmt: skip
_PANES: dict[str, Callable[..., Any]] = {
    "count": lambda x: x.count(), "count_distinct": lambda x: x.nunique(), "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(), "min": lambda x: x.min(), "max": lambda x: x.max(), "var": lambda x: x.var(),
    "stddev": lambda x: x.std(), "first": lambda x: x.first(), "last": lambda x: x.last(),
    "median": lambda x: x.median(), "skew": lambda x: x.skew(), "kurtosis": lambda x: x.kurt(),
    "quantile": lambda x, q, how="linear": x.quantile(float(q), interpolation=how),
}  # fmt: skip
"""What groups and rolling windows have, by the aggregate."""
_GROUPS = _PANES | {
    "sum": lambda x: x.sum(min_count=1), "product": lambda x: x.prod(min_count=1), "var_pop": lambda x: x.var(ddof=0),
    "stddev_pop": lambda x: x.std(ddof=0), "bool_and": lambda x: x.all(), "bool_or": lambda x: x.any(),
    "range": lambda x: x.max() - x.min(), "collect": lambda x: x.agg(list), "nth": lambda x, n: x.agg(list).str[int(n)],
    "collect_distinct": lambda x: x.unique().map(list), "string_join": lambda x, by: x.agg(by.join),
    "mode": lambda x: x.agg(pd.Series.mode).map(lambda found: found if pd.api.types.is_scalar(found) else found[0]),
}  # fmt: skip
"""What groups have."""
_NOTES = {"mode": "of equally frequent values the smallest"}
_FLOAT_NOTES = {
    "sum": "a sum of doubles rounds at each step",
    "product": "a product of doubles may overflow on the way",
}


def answer(case: Case) -> Answer:
    """The rows of the answer. Raises `CannotSayError`."""
    log = _Log(case)
    found = log.answer()
    columns = [name for name in case.columns if name in found.columns]
    told = pa.Table.from_pandas(found[columns], preserve_index=False).to_pylist()
    return Answer(columns, [[row[name] for name in columns] for row in told], log.note)


class _Log:
    """One case over a data frame."""

    def __init__(self, case: Case) -> None:
        self.case, self.asked = case, ask(case)
        self.note, self.key = self.asked.note, list(self.asked.key)
        self.frame = _frame(case.given)

    def answer(self) -> pd.DataFrame:
        asked, window, given = self.asked, self.asked.window, self.case.spec
        if given.get("emit") in ("entered", "left"):
            raise CannotSayError("rows that enter and leave")
        if "ends" in given:
            raise CannotSayError("rows that last")
        if "join" not in given:
            self.prepare()
        elif (found := self.joined()) is not None:
            return found
        if asked.group_by and not isinstance(window, spec.Tumbling):
            raise CannotSayError("groups of panes that overlap")
        match window:
            case spec.Tumbling():
                found = self.tumbling()
            case spec.TimeInterval() if window.discard_age or "lag" in given or "min_gap" in given:
                raise CannotSayError("watermarks")
            case spec.TimeInterval():
                if window.duration != window.period:
                    raise CannotSayError("windows that hop")
                found = self.cells(window.duration, window.offset)
            case spec.Sliding() | spec.Batched() if given.get("emit") == "rows":
                raise CannotSayError("the rows of panes that overlap")
            case spec.Sliding():
                found = self.sliding(window)
            case spec.Batched():
                if window.within is not None:
                    raise CannotSayError("rows that leave by time without a new one")
                if window.every is not None or window.unique is not None or window.partition_by:
                    raise CannotSayError("lots of rows, or the newest of each value")
                retain = window.retain
                found = self.rolled(lambda group: group.rolling(retain, min_periods=1) if retain else group.expanding())
            case spec.TableWindows():
                found = self.table()
            case _:
                raise CannotSayError("row patterns")
        for name in [name for name, call in asked.calls.items() if getattr(call, "fills", False)]:
            found[name] = found.groupby(self.key)[name].ffill() if self.key else found[name].ffill()
        return found.query(given["having"]) if "having" in given else found

    # --- rows -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        case = self.case
        self.frame = self.frame.sort_values([*self.key, *self.asked.order, "_arrival"], ignore_index=True)
        for name, text in (case.spec.get("let") or {}).items():
            self.frame[name] = self.value(text)
        if "where" in case.spec:
            self.frame = self.frame[self.is_true(case.spec["where"])]
        if "distinct" in case.spec:
            column = case.spec["distinct"]
            if " " in column:
                raise CannotSayError("duplicates within a time or a number of rows")
            self.frame = self.frame[~self.frame.duplicated([*self.key, column]) | self.frame[column].isna()]
        self.frame = self.frame.reset_index(drop=True)

    def of_key(self, values: pd.Series[Any]) -> Any:
        return values.groupby([self.frame[name] for name in self.key] or [0] * len(values), dropna=False)

    def value(self, operand: Any) -> pd.Series[Any]:
        """An expression in the words of `DataFrame.eval`; ``lag`` becomes a column of its own."""
        text = str(operand)
        if sees_window(text):
            raise CannotSayError("conditions that see the open window")
        frame = self.frame
        for number, found in enumerate(re.findall(r"lag\(([^()]*)\)", text)):
            name, _, back = found.partition(",")
            frame = frame.assign(**{f"_lag{number}": self.of_key(frame[name]).shift(int(back or 1))})
            text = text.replace(f"lag({found})", f"_lag{number}")
        found = frame.eval(_in_python(text))
        assert isinstance(found, pd.Series)
        return found

    def is_true(self, condition: Any) -> pd.Series[Any]:
        return self.value(condition).astype("boolean").fillna(value=False)

    def before(self, values: pd.Series[Any]) -> Any:
        return self.of_key(values).shift()

    def size(self, seconds: Fraction, column: str | None = None) -> Any:
        """Seconds as a difference of the clock."""
        if self.asked.is_time(column or self.asked.clock):
            return pd.Timedelta(microseconds=int(seconds * 1_000_000))
        return int(seconds) if seconds.denominator == 1 else float(seconds)

    # --- aggregates -----------------------------------------------------------------------------------------------

    def aggregated(self, groups_of: Callable[[pd.DataFrame], Any], is_empty_shown: bool = False) -> pd.DataFrame:
        """What a grouping makes of the calls."""
        found = groups_of(self.frame).size().to_frame("_size")
        for name in {"window_start", "window_end"} & {*self.frame.columns} - {*found.index.names}:
            found[name] = groups_of(self.frame)[name].first()
        for name, call in self.asked.calls.items():
            calls = (call,) if isinstance(call, spec.AggregateCall) else call.calls
            for each in calls:
                part = name if each is call else f"_{each.name}"
                found[part] = self.call(each, groups_of).reindex(found.index)
                if each.function == "count":
                    found[part] = found[part].fillna(0)
            if not isinstance(call, spec.AggregateCall):
                text = str(call.expression)
                for each in calls:
                    text = text.replace(f'"{each.name}"', f"`_{each.name}`")
                found[name] = found.eval(text)
        return (found if is_empty_shown else found[found["_size"] > 0]).reset_index()

    def call(self, call: spec.AggregateCall, groups_of: Callable[[pd.DataFrame], Any]) -> Any:
        frame = self.frame if call.where is None else self.frame[self.is_true(call.where)]
        if not call.arguments:
            if call.function != "count":
                raise CannotSayError(f"the aggregate {call.function}")
            return groups_of(frame)["_r"].count() if "_r" in frame else groups_of(frame).size()
        first, *more = call.arguments
        x = frame[first.name] if isinstance(first, spec.Column) else self.value(first).loc[frame.index]
        frame = frame.assign(_x=x)[x.notna()].reset_index(drop=True)
        if str(x.dtype) == "Float64":
            self.note = self.note or "NaN is no value" * any("NaN" in row for row in self.case.given.rows)
            self.note = self.note or _FLOAT_NOTES.get(call.function, "")
        self.note = self.note or _NOTES.get(call.function, "")
        if call.function in ("arg_min", "arg_max"):
            groups = groups_of(frame)[str(more[0])]
            places = groups.idxmin() if call.function == "arg_min" else groups.idxmax()
            return places.map(frame["_x"])
        taken = _GROUPS.get(call.function)
        if taken is None:
            raise CannotSayError(f"the aggregate {call.function}")
        return taken(groups_of(frame)["_x"], *more)

    # --- windows --------------------------------------------------------------------------------------------------

    def tumbling(self) -> pd.DataFrame:
        first, *others = self.asked.policies
        if isinstance(first, clocks.Growing):
            raise CannotSayError("windows that come out as they grow")
        if isinstance(first, clocks.Cron):
            raise CannotSayError("cron expressions")
        number = pd.Series(range(len(self.frame)), self.frame.index, "Int64")
        match first:
            case _ if others:
                pass
            case clocks.Time(seconds):
                return self.cells(seconds, self.asked.origin)
            case clocks.Calendar():
                return self.calendar(first)
            case rows.Count(n):
                return self.of_parts(self.of_key(number).cumcount() // n)
            case conditions.From(opener, until) if until is not None:
                begun = self.of_key(number.where(self.is_true(opener))).ffill()
                ended = self.of_key(self.before(number.where(self.is_true(until)))).ffill().fillna(-1)
                return self.of_parts(ended, (begun > ended).fillna(value=False))
            case conditions.When(opener):
                opened = self.of_key(self.is_true(opener)).cumsum()
                return self.of_parts(opened, opened > 0)
        breaks = pd.Series(False, self.frame.index, dtype="boolean")
        for policy in self.asked.policies:
            breaks |= self.breaks(policy).astype("boolean").fillna(value=False)
        runs = [self.is_true(each.condition) for each in self.asked.policies if isinstance(each, conditions.While)]
        return self.of_parts(self.of_key(breaks).cumsum(), *runs)

    def breaks(self, policy: Any) -> Any:
        """Whether a row begins a window, as two neighbouring rows say."""
        match policy:
            case rows.Gap(name, by):
                return self.of_key(self.frame[name]).diff() > self.size(by, name)
            case rows.Changing("gap", name, by) if name is not None:
                return self.of_key(self.frame[name]).diff() > self.before(self.value(by))
            case rows.Change(columns):
                found = pd.Series(False, self.frame.index)
                for value in map(self.value, columns):
                    before = self.before(value)
                    found |= (value != before).fillna(value=True).astype(bool) & ~(value.isna() & before.isna())
                return found
            case rows.Punct(condition) if condition is not None:
                return self.before(self.is_true(condition))
            case conditions.Split(condition):
                return self.is_true(condition)
            case conditions.While(condition):
                return ~self.before(self.is_true(condition)).astype("boolean")
            case clocks.Time(seconds):
                cell = self.frame[self.asked.clock] // self.size(seconds)
                return cell != self.before(cell)
        raise CannotSayError(BREAKS.get(type(policy), type(policy).__name__.lower()))

    def of_parts(self, number: pd.Series[Any], is_in: Any = slice(None)) -> pd.DataFrame:
        """Groups by a running number; ``is_in``: which rows are in a window."""
        self.frame = self.frame.assign(_w=number)[is_in]
        if self.case.spec.get("emit") == "rows":
            return self.frame
        for name, side in [("window_start", "min"), ("window_end", "max")] if self.asked.order else []:
            clock = self.frame.groupby([*self.key, "_w"], dropna=False)[self.asked.order[0]]
            self.frame = self.frame.assign(**{name: clock.transform(side)})
        return self.aggregated(lambda frame: frame.groupby([*self.key, "_w", *self.asked.group_by], dropna=False))

    def times(self) -> pd.Series[Any]:
        """The clock as `resample` and `rolling` take it: numbers are seconds."""
        clock = self.frame[self.asked.clock]
        return clock if self.asked.is_time(self.asked.clock) else pd.to_datetime(clock * 1_000_000, unit="us")

    def cells(self, length: Fraction, offset: Fraction) -> pd.DataFrame:
        step, moved = (pd.Timedelta(microseconds=int(each * 1_000_000)) for each in (length, offset))
        return self.resampled(self.times(), step, step, {"origin": "epoch", "offset": moved})

    def resampled(
        self, times: pd.Series[Any], freq: Any, step: Any, more: dict[str, Any], by: Any = None
    ) -> pd.DataFrame:
        """`resample`, which has the windows without rows, too. ``by``: what is added to the beginnings of windows."""
        self.frame = self.frame.assign(_t=times)[times.notna()]
        more = {"on": "_t", "closed": "right" if self.asked.is_right else "left", "label": "left", **more}
        by_key = [*self.key, *self.asked.group_by]

        def groups_of(frame: pd.DataFrame) -> Any:
            return (frame.groupby(by_key, dropna=False) if by_key else frame).resample(freq, **more)

        found = self.aggregated(groups_of, bool(self.asked.option("empty")))
        start, end = found["_t"], found["_t"] + step
        bounds = [each if by is None else each + by for each in (start, end)]
        if not self.asked.is_time(self.asked.clock):
            bounds = [(each - pd.Timestamp(0)) / pd.Timedelta(seconds=1) for each in bounds]
        elif "UTC" in self.case.given.columns[self.asked.clock]:
            bounds = [each.dt.tz_convert("UTC") for each in bounds]
        return found.assign(window_start=bounds[0], window_end=bounds[1])

    def calendar(self, window: clocks.Calendar) -> pd.DataFrame:
        times = self.times()
        if "UTC" in self.case.given.columns[self.asked.clock]:
            times = times.dt.tz_convert(window.tz)
        by = pd.Timedelta(hours=window.at.hour, minutes=window.at.minute)
        freq, step = _CALENDAR[window.unit]
        self.note = self.note or "days that begin later are moved by a time that is always the same"
        freq = freq.replace("MON", window.start.upper())
        return self.resampled(times - by, freq, pd.DateOffset(**step), {}, by)

    def sliding(self, window: spec.Sliding) -> pd.DataFrame:
        evict, trigger = window.evict, window.trigger
        of_key = self.of_key(self.frame["_arrival"])
        number = of_key.cumcount()
        fires = of_key.cumcount(ascending=False) == 0
        match trigger:
            case rows.Count(m):
                fires |= (number + 1) % m == 0
            case conditions.When(condition):
                fires |= self.is_true(condition)
            case _:
                raise CannotSayError("a trigger by time or by a rise")
        is_partial = self.asked.option("partial", False)
        match evict:
            case rows.Count(n) if n > 0:
                fires &= is_partial or number >= n - 1
                found = self.rolled(lambda group: group.rolling(n, min_periods=1))
            case rows.Delta(name, _) if not is_partial or (name,) != self.asked.order:
                raise CannotSayError("an eviction by a value that may fall")
            case clocks.Time(by) | rows.Delta(_, by):
                self.frame = self.frame.assign(_t=self.times())
                wide = pd.Timedelta(microseconds=int(by * 1_000_000))
                found = self.rolled(lambda group: group.rolling(wide, on="_t", closed="both", min_periods=1))
            case _:
                raise CannotSayError("a window that holds nothing")
        return found[fires]

    def rolled(self, windows_of: Callable[[Any], Any]) -> pd.DataFrame:
        """`rolling` and `expanding` make a pane at each row."""
        frame = self.frame.assign(_one=1)
        found = self.frame.copy()
        for name, call in self.asked.calls.items():
            if not isinstance(call, spec.AggregateCall) or call.where is not None:
                raise CannotSayError("arithmetic or a condition of panes that overlap")
            if call.function not in _PANES or (not call.arguments and call.function != "count"):
                raise CannotSayError(f"the aggregate {call.function} of panes that overlap")
            column = str(call.arguments[0]) if call.arguments else "_one"
            windows = windows_of(frame.groupby(self.key, dropna=False) if self.key else frame)
            told = _PANES[call.function](windows[column], *call.arguments[1:])
            found[name] = told.droplevel(list(range(len(self.key)))) if self.key else told
        return found

    def table(self) -> pd.DataFrame:
        if self.asked.option("empty"):
            raise CannotSayError("windows without rows")
        request = parse_windows(self.asked.option("windows"), False)
        own = _frame(self.case.tables[request.name]).add_prefix(f"{request.name}_")
        taken = {f"{request.name}_{each.column}": each.name for each in request.take or () if each.name}
        pairs = _merged(self.frame, own, [(each.left, f"{request.name}_{each.right}") for each in request.keys])
        start, end = (f"{request.name}_{each}" for each in (request.start, request.end))
        inside = pairs[self.asked.clock].between(pairs[start], pairs[end], "right" if self.asked.is_right else "left")
        self.frame = pairs[inside].sort_values("_arrival", kind="stable").rename(columns=taken)
        own_columns = [taken.get(name, name) for name in own.columns]
        found = self.aggregated(lambda frame: frame.groupby([*self.key, *own_columns], dropna=False))
        return found.assign(window_start=found[taken.get(start, start)], window_end=found[taken.get(end, end)])

    # --- joins ----------------------------------------------------------------------------------------------------

    def joined(self) -> pd.DataFrame | None:
        """Pairs; None where both logs have become one."""
        asked, case = self.asked, self.case
        request, window = joins.parse_join(asked.option("join")), asked.window
        name = request.name
        right = _frame(case.tables[name] if case.tables else case.given)
        right = right if request.where is None else right.query(str(request.where))
        keys = [(pair.left, pair.right) for pair in request.keys] or [(each, each) for each in asked.key]
        keys = [(one, f"{name}_{two}") for one, two in keys]
        orders = [(pair.left, pair.right) for pair in request.orders] or [(each, each) for each in asked.order]
        one, two = orders[0][0], f"{name}_{orders[0][1]}"
        right = right.add_prefix(f"{name}_").rename(columns={f"{name}__arrival": "_r"})
        left = self.frame if "where" not in case.spec else self.frame.query(case.spec["where"])
        if request.how == "union":
            right = right.rename(columns={theirs: own for own, theirs in [*keys, (one, two)]} | {"_r": "_arrival"})
            sides = [right.assign(_side="right"), left.assign(_side="left")][:: -1 if request.strict else 1]
            self.frame = pd.concat(sides, ignore_index=True).drop(columns="_arrival").reset_index(names="_arrival")
            self.prepare()
            return None
        window = as_other(window) if isinstance(window, spec.SideWindows) else window
        if isinstance(window, joins.At):
            return self.asof(window, request, left, right, keys, two)
        pairs = _merged(left, right, keys)
        step = None
        if isinstance(window, joins.Around) and not window.prevailing:
            low, high = self.size(window.before, one), self.size(window.after, one)
            inside = pairs[two].between(pairs[one] - low, pairs[one] + high)
        elif isinstance(window, spec.Tumbling) and isinstance(window.policy, clocks.Time):
            step = self.size(window.policy.seconds)
            inside = pairs[one] // step == pairs[two] // step
        else:
            raise CannotSayError("a session, a count, or the row that prevails before a range")
        pairs = pairs[inside.fillna(value=False)]
        pairs = pairs.query(_in_python(case.spec["match"])) if "match" in case.spec else pairs
        alone = [left[~left["_arrival"].isin(pairs["_arrival"])], right[~right["_r"].isin(pairs["_r"])]]
        lonely = {"left": alone[:1], "right": alone[1:], "full": alone}.get(request.how, [])
        if request.how in ("semi", "anti"):
            pairs = alone[0] if request.how == "anti" else left[left["_arrival"].isin(pairs["_arrival"])]
        found = pd.concat([pairs, *lonely], ignore_index=True)
        for own, theirs in [*keys, (one, two)] if two in found else []:
            found[own if own != one else "_t"] = found[own].fillna(found[theirs])
        if step is not None:
            cell = found["_t" if "_t" in found else one] // step
            found = found.assign(window_start=cell * step, window_end=(cell + 1) * step)
        if not asked.calls:
            return found
        self.frame = found
        by = [each for each in case.columns if each in found.columns and each not in asked.calls]
        return self.aggregated(lambda frame: frame.groupby([*by, *([] if step else ["_arrival"])], dropna=False))

    def asof(self, window: joins.At, request: joins.Join, left: Any, right: Any, keys: Any, two: str) -> pd.DataFrame:
        """`merge_asof`, once for each offset."""
        parts = []
        for offset in window.offsets:
            asked = left.assign(_t=left[self.asked.clock] + self.size(offset), _offset=float(offset))
            asked = asked.rename(columns={"_offset": f"{request.name}_offset"}).sort_values("_t", kind="stable")
            pairs = pd.merge_asof(
                asked, right.sort_values(two, kind="stable"), left_on="_t", right_on=two,
                left_by=[own for own, _ in keys] or None, right_by=[theirs for _, theirs in keys] or None,
                tolerance=None if window.within is None else self.size(window.within),
                allow_exact_matches=not request.strict,
            )  # fmt: skip
            if "match" in self.case.spec:
                is_found = pairs.eval(self.case.spec["match"]).fillna(value=False)
                pairs[right.columns] = pairs[right.columns].where(is_found)
            parts.append(pairs if request.how == "left" else pairs[pairs["_r"].notna()])
        return pd.concat(parts)


def _in_python(text: str) -> str:
    """A condition of SQL as `DataFrame.eval` takes it."""
    return re.sub(r"\b(AND|OR|NOT|IN)\b", lambda word: word[0].lower(), re.sub(r"(?<![<>])=", "==", text))


def _merged(left: pd.DataFrame, right: pd.DataFrame, keys: list[tuple[str, str]]) -> pd.DataFrame:
    """All pairs of rows with equal keys, of which a mask then takes those in a range."""
    if not keys:
        return left.merge(right, how="cross")
    return left.merge(right, left_on=[own for own, _ in keys], right_on=[theirs for _, theirs in keys])


def _frame(given: Rows) -> pd.DataFrame:
    return given.table().to_pandas(types_mapper=_TYPES.get).assign(_arrival=range(len(given.rows)))
