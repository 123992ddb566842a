"""How kernels are compiled: once per machine, at their first call, and kept on disk for every later process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.dispatcher import Dispatcher

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a flat function over arrays. Division follows IEEE instead of raising.

    Numba compiles anew where the source of a kernel changes, but does not see a change in the kernels and constants of
    other modules that are compiled into it. So what is kept on disk goes by a name that tells of these, too.
    """
    function.__qualname__ = f"{function.__qualname__}-{_digest(cast(FunctionType, function))}"
    return cast(Function, njit(cache=True, error_model="numpy")(function))


def _digest(function: FunctionType) -> str:
    """Tell apart functions that do anything else, or of which what they call or look up does."""
    code = function.__code__
    told = [code.co_code.hex(), *(repr(value) for value in code.co_consts if not isinstance(value, CodeType))]
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher) and value.py_func is not function:
            value = _digest(value.py_func)
        if isinstance(value, int | float | str | tuple):
            told.append(f"{name}={value!r}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]
