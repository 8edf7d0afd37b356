"""Commands of the fleet: run it, and change who belongs to it."""

from tacit.cli.fleet.commands import app

__all__ = ["app"]
