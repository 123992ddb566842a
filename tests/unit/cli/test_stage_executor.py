"""The executor of a stage waits for Spark when a task is first needed, and names the stage in its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from wincli.cli.run.context import RunContext
from wincli.cli.run.pipeline import SparkStageExecutor
from wincli.windowing.spark.boot import Progress


@dataclass
class Session:
    """Stands in for a running Spark whose every action is half done when it is looked at."""

    is_open: bool = False
    parallelism: int = 7
    on_progress: Callable[[Progress], None] | None = None

    def map(self, label: str, function: Callable[[Any], Any], items: Any) -> list[Any]:
        assert self.on_progress is not None
        self.on_progress(Progress(label, 1, 2, 1, 1))
        return [function(item) for item in items]

    def shuffle(self, label: str, send: Any, receive: Any, items: Any, partitions: int) -> list[Any]:
        pairs = list(send(iter(items)))
        return [
            found for at in range(partitions) for found in receive(at, iter([pair for pair in pairs if pair[0] == at]))
        ]

    def broadcast(self, value: Any) -> Any:
        return ("sent", value)

    @contextmanager
    def shared_folders(self) -> Iterator[tuple[str, ...]]:
        yield ("disk",)


@dataclass
class Boot:
    """Stands in for Spark that starts; counts how often it is waited for."""

    up: Session = field(default_factory=Session)
    waited: int = 0

    def session(self) -> Session:
        self.waited += 1
        return self.up


@dataclass
class Written:
    """Messages that are kept."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str, **_: Any) -> None:
        self.notes.append(text)


def made(boot: Boot, shown: list[Progress] | None = None) -> tuple[SparkStageExecutor, Written]:
    messages = Written()
    show = (shown if shown is not None else []).append
    context = RunContext(boot, show, messages, 0.0)  # type: ignore[arg-type]
    return SparkStageExecutor(context, "2026-11-02: "), messages


def test_nothing_waits_before_a_task_is_needed() -> None:
    boot = Boot()
    executor, _ = made(boot)
    stage = executor.named("stage sites: ", 10)
    assert boot.waited == 0
    assert stage.map("scan", abs, [-1]) == [1]
    assert boot.waited == 1


def test_progress_names_the_unit_and_the_stage_and_has_its_rows() -> None:
    shown: list[Progress] = []
    executor, _ = made(Boot(), shown)
    first, second = executor.named("stage a: ", 10), executor.named("stage b: ", 4)
    first.map("scan", abs, [1])
    second.map("scan", abs, [1])
    first.map("write csv", abs, [1])
    assert [(seen.label, seen.rows, seen.done, seen.total) for seen in shown] == [
        ("2026-11-02: stage a: scan", 10, 1, 2),
        ("2026-11-02: stage b: scan", 4, 1, 2),
        ("2026-11-02: stage a: write csv", 10, 1, 2),
    ]


def test_everything_that_an_executor_does_is_done_by_spark() -> None:
    executor, _ = made(Boot())
    pairs = executor.shuffle("x", lambda items: ((at % 2, at) for at in items), lambda _, got: got, [1, 2, 3], 2)
    assert pairs == [(0, 2), (1, 1), (1, 3)]
    assert (executor.parallelism, executor.broadcast(5)) == (7, ("sent", 5))
    with executor.shared_folders() as folders:
        assert folders == ("disk",)


def test_an_open_cluster_is_noted_once_a_command() -> None:
    executor, messages = made(Boot(Session(is_open=True)))
    for stage in ("a", "b"):
        executor.named(stage, 1).map("scan", abs, [1])
    assert len(messages.notes) == 1
    assert "spark.authenticate off" in messages.notes[0]


def test_a_closed_cluster_is_not_noted() -> None:
    executor, messages = made(Boot())
    executor.map("scan", abs, [1])
    assert messages.notes == []
