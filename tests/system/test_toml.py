"""Configuration files: what is written is read back, and a bad file gets one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.system.toml import read_toml, write_toml


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    values = {"name": 'north "1"', "n": 3, "none": None, "plan": {"rate": 0.5, "gone": None}}
    write_toml(path, values, comment="One party.\nPaths are relative to this file.")
    assert path.read_text().startswith("# One party.\n# Paths are relative")
    assert read_toml(path) == {"name": 'north "1"', "n": 3, "plan": {"rate": 0.5}}


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file"), (b"a = ", "not valid"), (b"\xff", "not valid")]
)
def test_a_bad_file_is_named(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TacitError, match=said) as caught:
        read_toml(path)
    assert str(path) in str(caught.value)
