"""How long work reports where it is: a callable that any caller may pass in."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with steps done, steps in all, and what is being done or was found."""

    def __call__(self, done: int, total: int, message: str) -> None:
        """Show it; must return quickly and must not raise."""
        ...


def silent(done: int, total: int, message: str) -> None:
    """The default: say nothing."""
