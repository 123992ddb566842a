"""How much `scripts/golden` sees: one-line mistakes in a copy of the checkout, made at random, and which job tells.

A mistake flips a comparison, changes a number by one, swaps ``and`` with ``or``, drops a ``not``, or swaps ``+`` with
``-``. The jobs that call the function around it run first to last until one differs from the unchanged checkout. A
function that is compiled, and what runs when a module is loaded, is called by no job that can be seen: all jobs run,
those first that call others of the module.
"""

from __future__ import annotations

import ast
import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden_compare import first_difference

PACKAGES = ("windowing", "readers", "writers", "cli")
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is not": "is", "is": "is not",
                "not in": "in", "in": "not in"}  # fmt: skip
_OTHERS = {"and": "or", "or": "and", "+": "-", "-": "+"}


@dataclass(frozen=True)
class Mutation:
    """A change of some characters of a line.

    ``line``: from 1. ``start``, ``end``: characters of it that change. ``function``: the first line of the function
    around it, 0 where it runs when the module is loaded. ``is_compiled``: whether that function is a kernel.
    """

    path: str
    line: int
    start: int
    end: int
    instead: str
    function: int
    is_compiled: bool

    def told(self, text: str) -> str:
        """Return the line before and after."""
        before = text.splitlines()[self.line - 1]
        return f"{self.path}:{self.line}: {before.strip()}  ->  {self.changed(before).strip()}"

    def changed(self, line: str) -> str:
        return line[: self.start] + self.instead + line[self.end :]


def try_mutations(net: Any, root: Path, count: int, seed: int, numbers: str = "") -> int:
    """Make mistakes one at a time and print for each which job tells, or why none does."""
    kept = net.folder / "truth.json"  # with --keep, for another seed over the same checkout
    truth = json.loads(kept.read_text()) if kept.exists() else net.run(root, traced=True)
    kept.write_text(json.dumps(truth))
    net.jobs = [job for job in net.jobs if job.name in truth]
    calls: dict[tuple[str, int], list[Any]] = {}
    for job in net.jobs:
        for each in truth[job.name].get("calls", ()):
            path, _, line = each.rpartition(":")
            calls.setdefault((path, int(line)), []).append(job)
    copy = net.folder / "copy-of-checkout"
    left_out = shutil.ignore_patterns(".venv", ".git", "tests", "docs")
    shutil.copytree(root, copy, ignore=left_out, symlinks=True, dirs_exist_ok=True)
    caught, wanted = 0, {int(each) for each in numbers.split(",") if each}
    for number, each in enumerate(random.Random(seed).sample(sorted(sites(root), key=str), count), 1):
        if wanted and number not in wanted:
            continue
        text = (root / each.path).read_text()
        jobs = calls.get((each.path, each.function), [])
        is_seen = bool(each.function) and not each.is_compiled
        if not jobs and is_seen:
            verdict = "escaped: no job calls this function"
        else:
            near = {job.name for (path, _), found in calls.items() if path == each.path for job in found}
            verdict = _tried(net, copy, each, text, _in_turn(jobs if is_seen else net.jobs, near), truth)
        caught += verdict.startswith("caught")
        print(f"{number:2}. {each.told(text)}\n    {verdict}", flush=True)
    print(f"{caught} of {len(wanted) or count} caught (seed {seed})")
    return int(caught < (len(wanted) or count))


def _in_turn(jobs: list[Any], near: set[str]) -> list[Any]:
    """Jobs in random order, so that the first ones differ from each other: ``near`` first, Spark and stores last."""
    mixed = random.Random(1).sample(jobs, len(jobs))
    return sorted(
        mixed, key=lambda job: (job.spark == "spark", job.name not in near, bool(job.stores), len(job.commands) > 9)
    )


def _tried(net: Any, copy: Path, each: Mutation, text: str, jobs: list[Any], truth: dict[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    lines[each.line - 1] = each.changed(lines[each.line - 1])
    target = copy / each.path
    target.write_text("".join(lines))
    try:
        found = net.run(copy, jobs=jobs, truth=truth)
    finally:
        shutil.copy2(net_root(each.path), target)
    for job in jobs:
        if job.name in found and (what := first_difference(found[job.name], truth[job.name])):
            return f"caught by: {job.name}\n      " + what.replace("\n", "\n      ")[:600]
    return f"escaped: {len(jobs)} jobs reach it, and none differs"


def net_root(path: str) -> Path:
    """Return a file of this checkout."""
    return Path(__file__).resolve().parent.parent / path


def sites(root: Path) -> Iterator[Mutation]:
    """All mistakes that can be made."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text()
            if path.name != "__init__.py":
                yield from _Finder(str(path.relative_to(root)), text).found(ast.parse(text))


class _Finder:
    """Goes through a module and notes where a mistake can be made."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.lines = path, text.splitlines()
        self.function, self.is_compiled = 0, False

    def found(self, node: ast.AST) -> Iterator[Mutation]:
        before = self.function, self.is_compiled
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.function = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            words = " ".join(map(ast.unparse, node.decorator_list))
            self.is_compiled |= any(word in words for word in ("kernel", "inline", "jit", "intrinsic"))
        yield from self._here(node)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "type_comment") and not self._is_for_types(node):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self.found(child)
        self.function, self.is_compiled = before

    def _is_for_types(self, node: ast.AST) -> bool:
        return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"

    def _here(self, node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare):
            for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                yield from self._between(left, right, _COMPARISONS)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between(left, right, _OTHERS)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            yield from self._between(node.left, node.right, _OTHERS)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and node.lineno == node.operand.lineno:
            yield self._mutation(node.lineno, node.col_offset, node.operand.col_offset, "")
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.lineno == node.end_lineno:
            yield self._mutation(node.lineno, node.col_offset, node.end_col_offset or 0, str(node.value + 1))

    def _between(self, left: ast.expr, right: ast.expr, words: dict[str, str]) -> Iterator[Mutation]:
        """A word between two expressions of one line, with the brackets around it."""
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return
        between = self._text(right.lineno)[left.end_col_offset : right.col_offset]
        word = between.strip().strip("()").strip()
        if word in words and self._text(right.lineno).isascii():
            start = left.end_col_offset + between.index(word)
            yield self._mutation(right.lineno, start, start + len(word), words[word])

    def _mutation(self, line: int, start: int, end: int, instead: str) -> Mutation:
        return Mutation(self.path, line, start, end, instead, self.function, self.is_compiled)

    def _text(self, line: int) -> str:
        return self.lines[line - 1]
