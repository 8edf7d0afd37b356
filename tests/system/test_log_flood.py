"""Logs do not flood: what is said again and again is written once a minute."""

from __future__ import annotations

import json
import logging

from tacit.system.logs import JsonLines, OncePerMinute


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("tacit.fleet", logging.WARNING, __file__, 1, text, None, None)


def test_a_sentence_is_written_once_a_minute_with_how_often_it_came() -> None:
    now = [0.0]
    quiet = OncePerMinute(lambda: now[0])
    written = []
    for second in range(130):
        now[0] = float(second)
        said = record("the analyser is away")
        if quiet.filter(said):
            written.append(json.loads(JsonLines().format(said)))
        assert quiet.filter(record(f"round {second}")), "others come through"
    assert [line.get("held_back", 0) for line in written] == [0, 59, 59]
