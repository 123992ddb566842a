"""How kernels are compiled: once per machine, at their first call, and kept on disk for every later process."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from .trusted_folders import planted, way_in, way_in_beside

# A .numba_config.yaml of the working folder may name a folder that compiled code is taken from. Numba looks for one
# when it is loaded and whenever it compiles; what it is to be told is told by the environment, NUMBA_*.
with contextlib.chdir("/") if os.access(".numba_config.yaml", os.F_OK) else contextlib.nullcontext():
    import numba
    from numba.core import config, types
    from numba.core.dispatcher import Dispatcher
    from numba.core.extending import intrinsic

config._config_fname = os.devnull

Function = TypeVar("Function", bound=Callable[..., Any])

REFUSED: dict[Path, str | None] = {}
"""The folders of compiled kernels that were looked at: why one is not used, None where it is."""


def kernel(function: Function) -> Function:
    """Compile a flat function over arrays. Division follows IEEE instead of raising.

    Numba compiles anew where the source of a kernel changes, but does not see a change in the kernels and constants of
    other modules that are compiled into it. So what is kept on disk goes by a name that tells of these, too.
    """
    function.__qualname__ = f"{function.__qualname__}-{_digest(cast(FunctionType, function))}"
    return njit(cache=True, error_model="numpy")(function)


def njit(**options: Any) -> Callable[[Function], Function]:
    """Compile as numba's `njit` does, and keep nothing in a folder of ``cache=True`` that others can write to."""

    def compiled(function: Function) -> Function:
        made = numba.njit(**options)(function)
        place = made.stats.cache_path if options.get("cache") else None
        if place is not None and _refusal(Path(place), Path(function.__code__.co_filename)):
            made = numba.njit(**{**options, "cache": False})(function)
        return cast(Function, made)

    return compiled


def _fused(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    floats = types.float64(types.float64, types.float64, types.float64)
    return floats, lambda _context, builder, _signature, numbers: builder.fma(*numbers)


fused = cast(Callable[[float, float, float], float], intrinsic(_fused))
"""``a * b + c``, rounded once, in kernels alone: an instruction where the processor has one, a call elsewhere."""


def _refusal(folder: Path, code: Path) -> str | None:
    """Why what was compiled is not to be taken from a folder: reading it is to run it."""
    if folder not in REFUSED:
        kept = sorted(folder.glob("*.nb?"))
        if folder.parent == code.parent:
            REFUSED[folder] = way_in_beside(code, folder) or planted(kept, code.parent.stat().st_uid)
        else:
            REFUSED[folder] = way_in(folder) or planted(kept)
    return REFUSED[folder]


def refusals() -> list[str]:
    """What is to be told of folders of compiled kernels that are not used."""
    return [
        f"kernels are compiled anew in each run, for {why}; make it yours alone (chown, chmod go-w), or name another "
        "folder: NUMBA_CACHE_DIR"
        for why in REFUSED.values()
        if why is not None
    ]


def _digest(function: FunctionType) -> str:
    """Tell apart functions that do anything else, or of which what they call or look up does."""
    code = function.__code__
    parts = [code.co_code.hex(), *(repr(value) for value in code.co_consts if not isinstance(value, CodeType))]
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher) and value.py_func is not function:
            value = _digest(value.py_func)
        if isinstance(value, int | float | str | tuple):
            parts.append(f"{name}={value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
