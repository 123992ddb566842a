"""Compilation of kernels: once per machine, at the first call; the result is cached on disk for later processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from .trusted_folders import planted, way_in, way_in_beside

# A .numba_config.yaml in the working folder could name a folder from which compiled code is loaded. Numba looks for
# this file at import and at each compilation. Only the environment (NUMBA_*) configures numba here.
with contextlib.chdir("/") if os.access(".numba_config.yaml", os.F_OK) else contextlib.nullcontext():
    import numba
    from llvmlite import ir
    from numba.core import config, types
    from numba.core.dispatcher import Dispatcher
    from numba.core.extending import intrinsic

config._config_fname = os.devnull

_WORD = ir.IntType(64)
Function = TypeVar("Function", bound=Callable[..., Any])

REFUSED: dict[Path, str | None] = {}
"""The cache folders of compiled kernels that were checked: the reason why a folder is not used, None if it is used."""


def kernel(function: Function) -> Function:
    """Compile a flat function over arrays. Division follows IEEE instead of raising.

    Kernels stand below the kernels and constants of their module that they use: see `njit`.
    """
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
    """Compile as numba's `njit` does, but do not use a cache folder to which other users can write.

    Numba compiles again if the source of a kernel changes, but does not notice changes in kernels and constants of
    other modules that are compiled into it. So the name in the cache contains a digest of these as well: of those that
    are defined by then.
    """

    def compiled(function: Function) -> Function:
        if options.get("cache"):
            function.__qualname__ = f"{function.__qualname__}-{_digest(cast(FunctionType, function))}"
        made = numba.njit(**options)(function)
        place = made.stats.cache_path if options.get("cache") else None
        if place is not None and _refusal(Path(place), Path(function.__code__.co_filename)):
            made = numba.njit(**{**options, "cache": False})(function)
        if (file := getattr(made._cache, "_cache_file", None)) is not None:
            file._load_index = partial(_index_or_none, file._load_index)
        return cast(Function, made)

    return compiled


def _index_or_none(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Read the index of a kernel's cache; return an empty one if it names a type that is gone.

    The types of arguments are pickled in the index, named tuples by the name of their class. After an upgrade in place
    a class may have another name, and numba would fail in place of compiling anew.
    """
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def _fused(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    floats = types.float64(types.float64, types.float64, types.float64)
    return floats, lambda _context, builder, _signature, numbers: builder.fma(*numbers)


fused = cast(Callable[[float, float, float], float], intrinsic(_fused))
"""``a * b + c``, rounded once, only in kernels: one instruction if the processor has it, otherwise a call."""


def _word_at(_typing: Any, data: Any, _at: Any) -> Any:
    def load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        place = builder.bitcast(builder.gep(array.data, [values[1]]), _WORD.as_pointer())
        word = builder.load(place, align=1)
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(data, types.intp), load


word_at = cast(Callable[[Any, int], Any], intrinsic(_word_at))
"""The eight bytes of an array from an index as one number, the first byte as its lowest; only in kernels.

The caller sees to it that the array has these bytes.
"""


def _put_word(_typing: Any, data: Any, _at: Any, _word: Any) -> Any:
    def store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        place = builder.bitcast(builder.gep(array.data, [values[1]]), _WORD.as_pointer())
        builder.store(values[2] if sys.byteorder == "little" else builder.bswap(values[2]), place, align=1)
        return context.get_dummy_value()

    return types.none(data, types.intp, types.uint64), store


put_word = cast(Callable[[Any, int, Any], None], intrinsic(_put_word))
"""Write a number as `word_at` reads it; only in kernels. The caller sees to it that the array has these bytes."""


def _first_one(_typing: Any, _word: Any) -> Any:
    return types.int64(types.uint64), lambda _context, builder, _signature, values: builder.cttz(
        values[0], ir.Constant(ir.IntType(1), 1)
    )


first_one = cast(Callable[[Any], int], intrinsic(_first_one))
"""The index of the lowest bit that is set, only in kernels and not for 0."""


def _refusal(folder: Path, code: Path) -> str | None:
    """Why compiled code must not be loaded from a folder, or None. To load compiled code is to run it."""
    if folder not in REFUSED:
        kept = sorted(folder.glob("*.nb?"))
        if folder.parent == code.parent:
            REFUSED[folder] = way_in_beside(code, folder) or planted(kept, code.parent.stat().st_uid)
        else:
            REFUSED[folder] = way_in(folder) or planted(kept)
    return REFUSED[folder]


def refusals() -> list[str]:
    """Return the messages about cache folders of compiled kernels that are not used."""
    return [
        f"kernels are compiled anew in each run, for {why}; make it yours alone (chown, chmod go-w), or name another "
        "folder: NUMBA_CACHE_DIR"
        for why in REFUSED.values()
        if why is not None
    ]


def _digest(function: FunctionType) -> str:
    """A digest of a function: its code, the kernels that it calls, and the constants that it reads."""
    code = function.__code__
    parts = [code.co_code.hex(), *(repr(value) for value in code.co_consts if not isinstance(value, CodeType))]
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher) and value.py_func is not function:
            value = _digest(value.py_func)
        if isinstance(value, int | float | str | tuple):
            parts.append(f"{name}={value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
