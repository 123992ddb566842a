"""How kernels are compiled: once per machine, at their first call, and kept on disk for every later process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a flat function over arrays. Division follows IEEE instead of raising."""
    return cast(Function, njit(cache=True, error_model="numpy")(function))
