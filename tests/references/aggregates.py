"""Every aggregate once more, a row at a time and in plain Python, as semantics section 9 reads.

Each function gets the rows of one pane as lists of Python values, one list per column argument, and the literals
after them. Exact numbers are computed as `Fraction` and rounded once at the end: sums, means, deviations and weighted
means are the floats nearest to the true ones.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any

from references import over_time, sketches

INT64 = range(-(2**63), 2**63)
Value = Any


class TooWideError(Exception):
    """The exact answer does not fit its type."""


def expected(
    function: str, columns: list[list[Value]], literals: list[Value], panes: Sequence[Sequence[int]]
) -> list[Value]:
    """The answer for each pane, given the rows that it shows in order; `TooWideError` where one does not fit."""
    return [REFERENCE[function](*[[column[i] for i in pane] for column in columns], *literals) for pane in panes]


def present(values: list[Value]) -> list[Value]:
    return [value for value in values if value is not None]


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def comparable(values: list[Value]) -> list[Value]:
    return [value for value in present(values) if not is_nan(value)]


def same(value: Value) -> Hashable:
    """Equal for values that count as one: all NaN, both zeros."""
    return "nan" if is_nan(value) else value


def running(values: list[float]) -> float:
    """The plain IEEE sum from left to right, for what is infinite or NaN."""
    total = 0.0
    for value in values:
        total += value
    return total


def endless(values: list[float]) -> list[float]:
    """What is infinite or NaN: where there is any, the IEEE sum of it is that of all, in any order."""
    return [value for value in values if not math.isfinite(value)]


def to_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def int64(exact: int) -> int:
    if exact not in INT64:
        raise TooWideError(exact)
    return exact


def decimal38(exact: Fraction, like: decimal.Decimal) -> decimal.Decimal:
    """A decimal of at most 38 digits with the scale of ``like``."""
    places = -int(like.as_tuple().exponent)
    unscaled = exact * Fraction(10) ** places
    assert unscaled.denominator == 1
    if abs(unscaled) >= 10**38:
        raise TooWideError(exact)
    with decimal.localcontext(prec=100):
        return decimal.Decimal(unscaled.numerator).scaleb(-places)


def count(*columns: list[Value]) -> int:
    return len(present(columns[0]))


def count_distinct(values: list[Value]) -> int:
    return len({same(value) for value in present(values)})


def sum_(values: list[Value]) -> Value:
    values = present(values)
    if not values:
        return None
    if isinstance(values[0], float):
        return sum(endless(values)) if endless(values) else to_float(sum(map(Fraction, values), Fraction(0)))
    if isinstance(values[0], decimal.Decimal):
        return decimal38(sum(map(Fraction, values), Fraction(0)), values[0])
    if isinstance(values[0], dt.timedelta):
        return sum(values, dt.timedelta())
    return int64(sum(values))


def mean(values: list[Value]) -> float | None:
    values = present(values)
    if not values:
        return None
    if isinstance(values[0], float) and endless(values):
        return float(sum(endless(values)))
    return to_float(sum(map(Fraction, values), Fraction(0)) / len(values))


def one_zero(value: Value) -> Value:
    """The two zeros are equal, and told as one."""
    return value + 0.0 if isinstance(value, float) else value


def min_(values: list[Value]) -> Value:
    return one_zero(min(comparable(values), default=None))


def max_(values: list[Value]) -> Value:
    return one_zero(max(comparable(values), default=None))


def nth(values: list[Value], place: int) -> Value:
    values = present(values)
    return values[place] if -len(values) <= place < len(values) else None


def first(values: list[Value]) -> Value:
    return nth(values, 0)


def last(values: list[Value]) -> Value:
    return nth(values, -1)


def spread(values: list[Value], less: int) -> Fraction | float | None:
    """Squared deviations from the mean over the count less ``less``."""
    values = present(values)
    if len(values) <= less:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    middle = sum(exact, Fraction(0)) / len(exact)
    return sum(((value - middle) ** 2 for value in exact), Fraction(0)) / (len(exact) - less)


def rounded(exact: Fraction | float | None) -> float | None:
    return to_float(exact) if isinstance(exact, Fraction) else exact


def root(exact: Fraction | float | None) -> float | None:
    if not isinstance(exact, Fraction):
        return exact
    top, bottom = math.isqrt(exact.numerator), math.isqrt(exact.denominator)
    if Fraction(top, bottom) ** 2 == exact:
        return to_float(Fraction(top, bottom))
    with decimal.localcontext(prec=100, Emin=-(10**6), Emax=10**6):
        return float((decimal.Decimal(exact.numerator) / exact.denominator).sqrt())


def central(values: list[Value], least: int) -> list[Fraction] | float | None:
    """The second to the fourth central moment, of at least so many values that are not all equal."""
    values = present(values)
    if len(values) < least:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return math.nan
    exact = [Fraction(value) for value in values]
    middle = sum(exact, Fraction(0)) / len(exact)
    moments = [sum(((value - middle) ** power for value in exact), Fraction(0)) / len(exact) for power in (2, 3, 4)]
    return moments if moments[0] else None


def skewness(values: list[Value], sample: bool) -> float | None:
    moments, n = central(values, 3 if sample else 2), len(present(values))
    if not isinstance(moments, list):
        return moments
    square = moments[1] ** 2 / moments[0] ** 3 * (Fraction(n * (n - 1), (n - 2) ** 2) if sample else 1)
    found = root(square)
    return found if found is None or moments[1] >= 0 else -found


def kurtosis(values: list[Value], sample: bool) -> float | None:
    moments, n = central(values, 4 if sample else 2), len(present(values))
    if not isinstance(moments, list):
        return moments
    excess = moments[2] / moments[0] ** 2 - 3
    return to_float(Fraction(n - 1, (n - 2) * (n - 3)) * ((n + 1) * excess + 6) if sample else excess)


def mad(values: list[Value]) -> float | None:
    middle = quantile(values, Fraction(1, 2))
    return None if middle is None else quantile([abs(float(v) - middle) for v in present(values)], Fraction(1, 2))


def rank(values: list[Value], ties: str = "average") -> float | None:
    """The place of the last value among all that are not null, from 1; NaN last."""
    if not values or values[-1] is None:
        return None
    keys = [(is_nan(value), 0 if is_nan(value) else value) for value in present(values)]
    below, equal = sum(key < keys[-1] for key in keys), keys.count(keys[-1])
    return {"average": below + (equal + 1) / 2, "min": float(below + 1), "max": float(below + equal)}[ties]


def quantile(values: list[Value], share: Fraction, method: str = "linear") -> float | None:
    floats = sorted((float(value) for value in present(values)), key=lambda v: (math.isnan(v), v))
    if not floats:
        return None
    place = (len(floats) - 1) * share
    if method in ("lower", "higher", "nearest"):
        return floats[{"lower": math.floor, "higher": math.ceil, "nearest": round}[method](place)]
    low, part = floats[math.floor(place)], place - math.floor(place)
    high = floats[math.ceil(place)]
    part = Fraction(1, 2) if part and method == "midpoint" else part
    if part == 0 or low == high:
        return low
    if math.isfinite(low) and math.isfinite(high):
        return to_float(Fraction(low) + (Fraction(high) - Fraction(low)) * part)
    return low * float(1 - part) + high * float(part)


def mode(values: list[Value]) -> Value:
    times: dict[Hashable, int] = {}
    for value in present(values):
        times[same(value)] = times.get(same(value), 0) + 1
    for value in present(values):
        if times[same(value)] == max(times.values()):
            return value
    return None


def arg(targets: list[Value], by: list[Value], best: Callable[[list[Value]], Value]) -> Value:
    for target, value in zip(targets, by, strict=True):
        if value is not None and not is_nan(value) and value == best(by):
            return target
    return None


def collect(values: list[Value]) -> list[Value] | None:
    return present(values) or None


def collect_distinct(values: list[Value]) -> list[Value] | None:
    firsts: dict[Hashable, Value] = {}
    for value in present(values):
        firsts.setdefault(same(value), value)
    return list(firsts.values()) or None


def wavg(values: list[Value], weights: list[Value]) -> float | None:
    pairs = [(x, w) for x, w in zip(values, weights, strict=True) if x is not None and w is not None]
    unbounded = [float(x) * float(w) for x, w in pairs if endless([x, w])]
    if unbounded:
        weight = sum_([float(w) for _, w in pairs])
        return None if weight == 0 else sum(unbounded) / weight
    total = sum((Fraction(w) for _, w in pairs), Fraction(0))
    return to_float(sum((Fraction(x) * Fraction(w) for x, w in pairs), Fraction(0)) / total) if total else None


def product(values: list[Value]) -> Value:
    values = present(values)
    if not values:
        return None
    if isinstance(values[0], int):
        return int64(math.prod(values))
    numbers = list(map(float, values))
    if endless(numbers) or 0 in numbers:
        return math.prod([v if v == 0 or not math.isfinite(v) else math.copysign(1.0, v) for v in numbers])
    return to_float(math.prod(map(Fraction, numbers)))


def string_join(values: list[str | None], separator: str) -> str | None:
    return separator.join(present(values)) if present(values) else None


def range_(values: list[Value]) -> Value:
    low, high = min_(values), max_(values)
    if low is None:
        return None
    if isinstance(low, decimal.Decimal):
        return decimal38(Fraction(high) - Fraction(low), low)
    if isinstance(low, dt.datetime) and low.tzinfo is not None:
        return high.astimezone(dt.UTC) - low.astimezone(dt.UTC)  # Python takes the clocks on the wall of one zone
    return int64(high - low) if isinstance(low, int) else high - low


def min_count(values: list[Value]) -> int:
    return comparable(values).count(min_(values))


def max_count(values: list[Value]) -> int:
    return comparable(values).count(max_(values))


REFERENCE: dict[str, Callable[..., Value]] = {
    "count": count,
    "count_distinct": count_distinct,
    "sum": sum_,
    "mean": mean,
    "min": min_,
    "max": max_,
    "first": first,
    "last": last,
    "nth": nth,
    "var": lambda values: rounded(spread(values, 1)),
    "stddev": lambda values: root(spread(values, 1)),
    "var_pop": lambda values: rounded(spread(values, 0)),
    "stddev_pop": lambda values: root(spread(values, 0)),
    "skew": lambda values: skewness(values, sample=True),
    "kurtosis": lambda values: kurtosis(values, sample=True),
    "skew_pop": lambda values: skewness(values, sample=False),
    "kurtosis_pop": lambda values: kurtosis(values, sample=False),
    "median": lambda values: quantile(values, Fraction(1, 2)),
    "quantile": quantile,
    "mad": mad,
    "rank": rank,
    "mode": mode,
    "arg_min": lambda targets, by: arg(targets, by, min_),
    "arg_max": lambda targets, by: arg(targets, by, max_),
    "collect": collect,
    "collect_distinct": collect_distinct,
    "wavg": wavg,
    "product": product,
    "integral": over_time.integral,
    "twa": over_time.twa,
    "slope": over_time.slope,
    "locf": over_time.locf,
    "bool_and": lambda values: all(present(values)) if present(values) else None,
    "bool_or": lambda values: any(present(values)) if present(values) else None,
    "string_join": string_join,
    "range": range_,
    "min_count": min_count,
    "max_count": max_count,
    "approx_count_distinct": sketches.approx_count_distinct,
    "approx_quantile": sketches.approx_quantile,
    "hll_sketch": sketches.hll_sketch,
    "kll_sketch": sketches.kll_sketch,
}
