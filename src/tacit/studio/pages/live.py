"""Server-sent events: what changes is sent to an open page as soon as it does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi.requests import Request
from fastapi.responses import StreamingResponse

_PAUSE_SECONDS = 0.25


def event_stream(
    request: Request,
    said: Callable[[], tuple[bool, dict[str, Any]]],
    *,
    pause_seconds: float = _PAUSE_SECONDS,
) -> StreamingResponse:
    """What `said` returns, whenever it differs, until it says that it was the last."""
    return StreamingResponse(_watch(request, said, pause_seconds), media_type="text/event-stream")


async def _watch(
    request: Request, said: Callable[[], tuple[bool, dict[str, Any]]], pause_seconds: float
) -> AsyncIterator[str]:
    last = ""
    while not await request.is_disconnected():
        ended, values = await asyncio.to_thread(said)
        text = json.dumps(values)
        if text != last:
            yield f"data: {text}\n\n"
            last = text
        if ended:
            return
        await asyncio.sleep(pause_seconds)
