"""Reading bodies, with a fleet's own refusals."""

from __future__ import annotations

from fastapi import Request

from tacit.fleet.deployment.batches.pools import Refused
from tacit.system.serving.bodies import BodyTooLarge, BodyTooSlow, read_body

REPORT_SECONDS = 120.0
BATCH_SECONDS = 6 * 3600.0  # up to 4 GiB, from the one sender that TLS lets in


async def read_exactly(request: Request, size: int) -> bytes:
    """A report, if it has exactly `size` bytes; refused before more than that is read."""
    body = await read_at_most(request, size, seconds=REPORT_SECONDS)
    if len(body) != size:
        raise Refused(
            "wrong-size", f"a sealed report has {size} bytes here, got {len(body)}; use the plan."
        )
    return body


async def read_at_most(request: Request, size: int, *, seconds: float | None = None) -> bytes:
    """The body if it has at most `size` bytes; refused before more than that is held."""
    try:
        return await read_body(request, size, seconds=seconds)
    except BodyTooLarge as error:
        raise Refused("wrong-size", str(error)) from None
    except BodyTooSlow as error:
        raise Refused("slow", str(error)) from None
