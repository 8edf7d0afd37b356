"""Reading the body of a request: so many bytes at most, and so long at most.

A sender that sends a byte now and then would otherwise hold its connection for days; a thousand of
them would fill a service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

BODY_SECONDS = 60.0  # for a whole body
PAUSE_SECONDS = 60.0  # between two parts of a body that may take longer


class BodyTooLarge(Exception):
    """A body has, or announces, more bytes than it may."""


class BodyTooSlow(Exception):
    """A body, or its next part, did not come in time."""


async def read_body(request: Request, size: int, *, seconds: float | None = None) -> bytes:
    """The body if it has at most `size` bytes and is there in time.

    `seconds` are for the whole of it, `BODY_SECONDS` if not given.
    """
    limit = BODY_SECONDS if seconds is None else seconds
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > size:
        raise BodyTooLarge(f"a body has at most {size} bytes here, got {declared}.")
    try:
        async with asyncio.timeout(limit):
            return await _read(aiter(request.stream()), size)
    except TimeoutError:
        raise BodyTooSlow(f"the body took more than {limit:g} s; send it again.") from None


async def _read(parts: AsyncIterator[bytes], size: int) -> bytes:
    body = bytearray()
    while (part := await _next_part(parts)) is not None:
        body += part
        if len(body) > size:
            raise BodyTooLarge(f"a body has at most {size} bytes here, got more.")
    return bytes(body)


async def _next_part(parts: AsyncIterator[bytes]) -> bytes | None:
    try:
        async with asyncio.timeout(PAUSE_SECONDS):
            return await anext(parts, None)
    except TimeoutError:
        raise BodyTooSlow(f"nothing came for {PAUSE_SECONDS:g} s; send it again.") from None
