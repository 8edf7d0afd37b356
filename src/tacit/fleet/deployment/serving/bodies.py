"""Reading bodies: no more bytes than expected, and no sender that keeps a place for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import Request

from tacit.fleet.deployment.batches.pools import Refused

_BODY_SECONDS = 60.0  # between two parts of a body
_REPORT_SECONDS = 120.0  # for a whole report, however many parts it comes in


async def read_exactly(request: Request, size: int) -> bytes:
    """The body if it has exactly `size` bytes; refused before more than that is read."""
    try:
        async with asyncio.timeout(_REPORT_SECONDS):
            body = await read_at_most(request, size)
    except TimeoutError:
        raise Refused(
            "slow", f"the report took more than {_REPORT_SECONDS:g} s; send it again."
        ) from None
    if len(body) != size:
        raise Refused(
            "wrong-size", f"a sealed report has {size} bytes here, got {len(body)}; use the plan."
        )
    return body


async def read_at_most(request: Request, size: int) -> bytes:
    """The body if it has at most `size` bytes; refused before more than that is held."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > size:
        raise Refused("wrong-size", f"a body has at most {size} bytes here, got {declared}.")
    body = bytearray()
    parts = aiter(request.stream())
    while (part := await _next_part(parts)) is not None:
        body += part
        if len(body) > size:
            raise Refused("wrong-size", f"a body has at most {size} bytes here, got more.")
    return bytes(body)


async def _next_part(parts: AsyncIterator[bytes]) -> bytes | None:
    """The next part of a body; a sender that stopped sending must not block the others."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await anext(parts, None)
    except TimeoutError:
        raise Refused("slow", f"nothing came for {_BODY_SECONDS:g} s; send it again.") from None
