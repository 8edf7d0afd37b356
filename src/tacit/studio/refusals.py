"""Whatever is refused gets one sentence: as a page for people, as JSON for our own scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response

_WANTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
}


def add_refusals(app: FastAPI) -> None:
    """Answer our own refusals and those of the framework alike."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def refused(request: Any, error: Exception) -> Response:
        return _answer(request, str(error), 422)

    async def misread(request: Any, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _answer(request, misread_sentence(error.errors()[0]), 422)

    async def not_there(request: Any, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = f"there is nothing at {request.url.path}; choose a page above."
        return _answer(request, sentence, error.status_code)

    app.add_exception_handler(TacitError, refused)
    app.add_exception_handler(RequestValidationError, misread)
    app.add_exception_handler(HTTPException, not_there)


def misread_sentence(problem: dict[str, Any]) -> str:
    """What was wrong with a value in the address."""
    wanted = _WANTED.get(problem["type"], "something else")
    return f"{problem['loc'][-1]} must be {wanted}, got {problem['input']!r}; correct it."


def _answer(request: Any, sentence: str, status: int) -> Response:
    from starlette.responses import JSONResponse

    from tacit.studio.pages.common import refusal

    if request.headers.get("accept", "").startswith("application/json"):
        return JSONResponse({"error": sentence}, status_code=status)
    return refusal(request, sentence, status=status)
