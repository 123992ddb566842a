"""Numba, and how kernels are made with it: where they are cached, and what of a cache is not used."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from .jit import REFUSED, Intrinsic, Kernel
from .trusted_folders import planted, way_in, way_in_beside

# A .numba_config.yaml in the working folder could name a folder from which compiled code is loaded. Numba looks for
# this file at import and at each compilation. Only the environment (NUMBA_*) configures numba here.
with contextlib.chdir("/") if os.access(".numba_config.yaml", os.F_OK) else contextlib.nullcontext():
    import numba
    from llvmlite import ir
    from numba.core import config, types
    from numba.core.extending import intrinsic
    from numba.core.runtime import rtsys

config._config_fname = os.devnull

_WORD = ir.IntType(64)


def dispatcher(kernel: Kernel, **more: bool) -> Any:
    """Return what numba makes of a kernel; ``more``: options besides its own.

    Numba compiles again if the source of a kernel changes, but does not notice changes in kernels and constants of
    other modules that are compiled into it. So the name in the cache contains a digest of these as well.
    """
    options, of = kernel.options | more, kernel.py_func
    function = FunctionType(of.__code__, {**of.__globals__}, of.__name__, of.__defaults__, of.__closure__)
    function.__qualname__, function.__doc__ = of.__qualname__, of.__doc__
    if options.get("cache"):  # a function may be two kernels
        apart = [f"{name}={value}" for name, value in options.items() if name == "_nrt" or name in more]
        function.__qualname__ = f"{function.__qualname__}-{_digest(of, *apart)}"
    made = numba.njit(**options)(function)
    place = made.stats.cache_path if options.get("cache") else None
    if place is not None and _refusal(Path(place), Path(function.__code__.co_filename)):
        made = numba.njit(**{**options, "cache": False})(function)
    if (file := getattr(made._cache, "_cache_file", None)) is None:
        _make_called(function)
    else:
        file._load_index = partial(_index_or_none, file._load_index)
        made._cache.load_overload = partial(_loaded, made._cache, function)
    return made


def _make_called(function: FunctionType) -> None:
    """Put what numba compiles in place of the kernels that a function calls."""
    found = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    made = {name: value.make_called() for name, value in found.items() if isinstance(value, Kernel | Intrinsic)}
    function.__globals__.update(made)


def _names(code: CodeType) -> set[str]:
    inner = (_names(value) for value in code.co_consts if isinstance(value, CodeType))
    return set(code.co_names).union(*inner)


def _loaded(cache: Any, function: FunctionType, signature: Any, context: Any) -> Any:
    """Load a compiled kernel from the cache as numba does, but without what only compiling needs, a fifth of a second.

    Numba imports all that it can compile before it looks into the cache. It does so again where it compiles. Nor are
    the kernels made that this one calls, which are five times as many: where the cache has none, it is compiled next.
    """
    rtsys.initialize(context)
    found = cache._load_overload(signature, context)
    if found is None:
        _make_called(function)
    return found


def _index_or_none(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Read the index of a kernel's cache; return an empty one if it names a type that is gone.

    The types of arguments are pickled in the index, named tuples by the name of their class. After an upgrade in place
    a class may have another name, and numba would fail in place of compiling anew.
    """
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def _refusal(folder: Path, code: Path) -> str | None:
    """Why compiled code must not be loaded from a folder, or None. To load compiled code is to run it."""
    if folder not in REFUSED:
        kept = sorted(folder.glob("*.nb?"))
        if folder.parent == code.parent:
            REFUSED[folder] = way_in_beside(code, folder) or planted(kept, code.parent.stat().st_uid)
        else:
            REFUSED[folder] = way_in(folder) or planted(kept)
    return REFUSED[folder]


@cache
def _digest(function: FunctionType, *apart: str) -> str:
    """A digest of a function: its code, the kernels that it calls, and the constants that it reads."""
    code = function.__code__
    parts = [*apart, code.co_code.hex(), *(repr(value) for value in code.co_consts if not isinstance(value, CodeType))]
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Kernel):
            value = _digest(value.py_func)
        if isinstance(value, np.generic | np.ndarray):
            value = (value.dtype.str, value.tolist())
        if isinstance(value, int | float | str | tuple):
            parts.append(f"{name}={value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


# The operations of `jit` that only kernels have.


@intrinsic
def fused(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    """``a * b + c``, rounded once."""
    floats = types.float64(types.float64, types.float64, types.float64)
    return floats, lambda _context, builder, _signature, numbers: builder.fma(*numbers)


@intrinsic
def word_at(_typing: Any, data: Any, _at: Any) -> Any:
    """Eight bytes of an array as one number."""

    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        place = builder.bitcast(builder.gep(array.data, [values[1]]), _WORD.as_pointer())
        word = builder.load(place, align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(data, types.intp), load


@intrinsic
def put_word(_typing: Any, data: Any, _at: Any, _word: Any) -> Any:
    """Write a number as eight bytes of an array."""

    def store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        place = builder.bitcast(builder.gep(array.data, [values[1]]), _WORD.as_pointer())
        builder.store(values[2] if sys.byteorder == "little" else builder.bswap(values[2]), place, align=1)
        return context.get_dummy_value()

    return types.none(data, types.intp, types.uint64), store


@intrinsic
def first_one(_typing: Any, _word: Any) -> Any:
    """The index of the lowest bit that is set."""
    return types.int64(types.uint64), lambda _context, builder, _signature, values: builder.cttz(
        values[0], ir.Constant(ir.IntType(1), 1)
    )
