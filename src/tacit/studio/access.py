"""Who may use the studio: whoever knows its token, from this machine, through this address.

The token is in the address that the command prints, as with notebooks; the first visit answers it
with a cookie that the workspace keeps, so pages that are open survive a restart. A request must
name the host that the studio listens on (a foreign name that points here would carry another page's
rights), and one that changes something must come from our pages.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tacit.studio.workspace import Workspace
from tacit.system.files import write_secret

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_READING = ("GET", "HEAD")
# Everything comes from the studio itself. Vega compiles its expressions, hence 'unsafe-eval'.
POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-eval'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Access:
    """The checks that every request passes."""

    def __init__(self, *, token: str, session: str, hosts: frozenset[str], port: int) -> None:
        self._token = token
        self._session = session
        self._hosts = hosts
        self._cookie = cookie_name(port)

    async def __call__(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Refuse, let in with a cookie, or pass on."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        host = request.headers.get("host", "").lower()
        if host not in self._hosts:
            return PlainTextResponse(f"this studio does not answer to {host!r}.", 421)
        if request.method not in _READING and not self._is_ours(request):
            return PlainTextResponse("this request comes from another page.", 403)
        given = request.query_params.get("token")
        if given is not None and _same(given, self._token) and request.method in _READING:
            entered = RedirectResponse(request.url.path, 303, headers=HEADERS)
            entered.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
            return entered
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            return PlainTextResponse(
                "open the address with the token that 'tacit studio' printed.", 403
            )
        answer = await call_next(request)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _is_ours(self, request: Request) -> bool:
        origin = request.headers.get("origin", "")
        return origin.removeprefix("http://").lower() in self._hosts


def kept_session(workspace: Workspace) -> str:
    """What cookies of this workspace's studios hold; made once, for its owner alone to read."""
    place = workspace.root / ".session"
    if not place.is_file():
        write_secret(place, new_token().encode())
    return place.read_text(encoding="ascii")


def _same(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode(), expected.encode())


def cookie_name(port: int) -> str:
    """A browser sends a cookie to every port of a machine, so each studio has a name of its own."""
    return f"tacit_studio_{port}"


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """How a browser on this machine names the studio."""
    names = {host, "127.0.0.1", "localhost"} if host in ("127.0.0.1", "localhost") else {host}
    return frozenset(f"{name}:{port}" for name in names)


def add_access(app: Any, access: Access) -> None:
    """Put the checks before everything else."""
    app.middleware("http")(access)
