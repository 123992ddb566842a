"""Kernels: functions that are compiled once per machine; the result is cached on disk for later processes.

To define a kernel costs nothing. Where one is first called it is made by `compiler`, which loads numba: most of what a
process imports is never called, and what it calls is mostly read from the cache.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

REFUSED: dict[Path, str | None] = {}
"""The cache folders of compiled kernels that were checked: the reason why a folder is not used, None if it is used."""

_CALLED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Kernel:
    """A function that numba compiles, or loads from its cache, where it is first called.

    It has all attributes of the compiled function, and asking for one makes it, too.

    ``py_func``: the function in Python.
    ``compiled``: numba's dispatcher, None until it is made; ``called``: that for other kernels, which alone call it.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self.py_func, self.options = function, options
        self.__doc__ = function.__doc__
        self.compiled: Any = None
        self.called: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self.compiled or self.make())(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by whoever looks over a module
            raise AttributeError(name)
        return getattr(self.make(), name)

    def make(self) -> Any:
        """Return the dispatcher, which numba has made by then."""
        if self.compiled is None:
            self.compiled = _compiler().dispatcher(self)
        return self.compiled

    def make_called(self) -> Any:
        """Return the dispatcher for kernels that call this one: Python cannot call it, which takes long to compile."""
        if self.called is None:
            self.called = _compiler().dispatcher(self, **_CALLED)
        return self.called


class Intrinsic:
    """An operation that only kernels have, by the name that it has in `compiler`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def make_called(self) -> Any:
        """Return what numba calls an intrinsic."""
        return getattr(_compiler(), self._name)


def kernel(function: Function) -> Function:
    """Compile a flat function over arrays. Division follows IEEE instead of raising."""
    return njit(cache=True, error_model="numpy")(function)


def frugal_kernel(function: Function) -> Function:
    """Compile a kernel that allocates nothing: of many arrays that it holds, it counts no references.

    To count them are atomic additions where a row ends a window, which took as long as all else of the loop. Kernels
    that it calls must not allocate either: those that are not compiled yet are compiled as it is.
    """
    return njit(cache=True, error_model="numpy", _nrt=False)(function)


def inline(function: Function) -> Function:
    """Compile a function that becomes part of the kernels that call it. It allocates nothing.

    Without allocations there is no counting of references to its arrays, which are atomic additions at each call.
    """
    return njit(cache=True, forceinline=True, error_model="numpy", _nrt=False)(function)


def njit(**options: Any) -> Callable[[Function], Function]:
    """Compile as numba's `njit` does, but do not use a cache folder to which other users can write."""

    def defined(function: Function) -> Function:
        return cast(Function, Kernel(cast(FunctionType, function), options))

    return defined


fused = cast(Callable[[float, float, float], float], Intrinsic("fused"))
"""``a * b + c``, rounded once, only in kernels: one instruction if the processor has it, otherwise a call."""

word_at = cast(Callable[[Any, int], Any], Intrinsic("word_at"))
"""The eight bytes of an array from an index as one number, the first byte as its lowest; only in kernels.

The caller sees to it that the array has these bytes.
"""

put_word = cast(Callable[[Any, int, Any], None], Intrinsic("put_word"))
"""Write a number as `word_at` reads it; only in kernels. The caller sees to it that the array has these bytes."""

first_one = cast(Callable[[Any], int], Intrinsic("first_one"))
"""The index of the lowest bit that is set, only in kernels and not for 0."""


def refusals() -> list[str]:
    """Return the messages about cache folders that are not used, of the kernels that were made by now."""
    return [
        f"kernels are compiled anew in each run, for {why}; make it yours alone (chown, chmod go-w), or name another "
        "folder: NUMBA_CACHE_DIR"
        for why in REFUSED.values()
        if why is not None
    ]


@cache
def _compiler() -> Any:
    is_collecting = gc.isenabled()
    gc.disable()  # imported modules stay, and to look for garbage among them takes as long as to import them
    try:
        return import_module(f"{__package__}.compiler")
    finally:
        if is_collecting:
            gc.enable()
