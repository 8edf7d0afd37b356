"""An extra that is left out on purpose skips what needs it, and nothing else does."""

from __future__ import annotations

import pytest

import left_out

SENTENCE = "'published' needs torch, which is not installed; type: pip install 'tacit-ts[networks]'"


def test_what_was_left_out_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "LEFT_OUT", frozenset({"networks"}))
    with pytest.raises(pytest.skip.Exception, match="networks"):
        left_out.skip_if_left_out(SENTENCE)
    with pytest.raises(pytest.skip.Exception, match="networks"):
        left_out.skip_if_import_left_out(ModuleNotFoundError("x", name="torch.nn"))


def test_nothing_else_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "LEFT_OUT", frozenset({"networks"}))
    left_out.skip_if_left_out("pip install 'tacit-ts[silo]'")
    left_out.skip_if_left_out("a sentence about networks")
    for name in ("jax", "nowhere", None):
        left_out.skip_if_import_left_out(ModuleNotFoundError("x", name=name))
    left_out.skip_if_import_left_out(ImportError("cannot import name 'x' from 'torch'"))


def test_without_a_word_nothing_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "LEFT_OUT", frozenset())
    left_out.skip_if_left_out(SENTENCE)
    left_out.skip_if_import_left_out(ModuleNotFoundError("x", name="torch"))
