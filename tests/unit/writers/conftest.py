"""What several tests of writers are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.quick_store import use_for_outputs


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local folder that stands in for a bucket."""
    (tmp_path / "store").mkdir()
    use_for_outputs(tmp_path, "s://", monkeypatch)
    return tmp_path / "store"
