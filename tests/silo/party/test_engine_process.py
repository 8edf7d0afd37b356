"""The engine as a child process: how it ended, in words."""

from __future__ import annotations

import pytest

from tacit.silo.party.engine_process import explain_exit


@pytest.mark.parametrize(
    ("code", "words", "own_fault"),
    [
        (255, "code 255", False),  # SPU after the loss of a peer
        (-9, "SIGKILL", True),
        (-11, "SIGSEGV", False),
        (-6, "SIGABRT", False),
    ],
)
def test_exits_become_words(code: int, words: str, own_fault: bool) -> None:
    reason, own = explain_exit(code)
    assert words in reason
    assert own == own_fault
