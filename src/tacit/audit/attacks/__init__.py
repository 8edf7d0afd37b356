"""Attacks on the three mechanisms as published, and the same attacks on the sound ones."""

from __future__ import annotations

from tacit.audit.attacks.result import AttackResult

__all__ = ["AttackResult"]
