"""What several tests of writers are given."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs

from wincli.writers.places import place


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local folder that stands in for a bucket."""
    (tmp_path / "store").mkdir()
    system, resolve = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), place.resolve

    def resolved(path: str) -> tuple[fs.FileSystem, str]:
        return (system, path.removeprefix("s://")) if path.startswith("s://") else resolve(path)

    monkeypatch.setattr(place, "resolve", resolved)
    return tmp_path / "store"
