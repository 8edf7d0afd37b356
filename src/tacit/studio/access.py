"""Who may use the studio: whoever knows its token, from this machine, through this address.

The token is in the address that the command prints, as with notebooks; the first visit answers it
with a cookie. A browser sends that cookie to every port of this machine, so it is worth something
to this studio alone, until it stops. A request must name the host that the studio listens on (a
foreign name that points here would carry another page's rights), and come from our pages or from
the address bar; one that changes something must say so by its origin.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.studio.workspace import Workspace
from tacit.system.files import write_secret

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_READING = ("GET", "HEAD")
_OWN = ("same-origin", "none")  # "same-site" would be any port of this machine
# Everything comes from the studio itself. Vega compiles its expressions, hence 'unsafe-eval'.
POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-eval'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
# A page that a command wrote: it loads nothing, sends nothing, and stands in no other page.
WRITTEN_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
SCRIPTED_POLICY = f"{WRITTEN_POLICY}; script-src 'unsafe-inline' 'unsafe-eval'"
_LEADING = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tacit studio</title>'
    '<meta http-equiv="refresh" content="0;url={0}"></head>'
    '<body><p><a href="{0}">Tacit studio</a></p></body></html>'
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
        answer = self._refused(request) or self._entered(request) or self._stranger(request)
        if answer is None:
            answer = await call_next(request)
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _refused(self, request: Request) -> Response | None:
        """A name that is not ours, or a page that is not."""
        host = request.headers.get("host", "").lower()
        if host not in self._hosts:
            return _sentence(f"this studio does not answer to {host!r}.", 421)
        if request.method not in _READING and not self._is_ours(request):
            return _sentence("this request comes from another page.", 403)
        return None

    def _entered(self, request: Request) -> Response | None:
        """The cookie for whoever has the token, and an address without it."""
        from starlette.responses import HTMLResponse, RedirectResponse

        given = request.query_params.get("token")
        if given is None or not _same(given, self._token) or request.method not in _READING:
            return None
        answer: Response
        if request.headers.get("sec-fetch-site", "none") in _OWN:
            answer = RedirectResponse(request.url.path, 303)
        else:  # from the file that the command opened: a redirect would go without the cookie
            answer = HTMLResponse(_LEADING.format("/"))
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return answer

    def _stranger(self, request: Request) -> Response | None:
        """Whoever has no cookie, and another page that has a browser which holds one."""
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            return _sentence("open the address with the token that 'tacit studio' printed.", 403)
        if request.headers.get("sec-fetch-site", "none") not in _OWN:
            return _sentence("another page asked for this; open it in the studio.", 403)
        return None

    def _is_ours(self, request: Request) -> bool:
        origin = request.headers.get("origin", "")
        return origin.removeprefix("http://").lower() in self._hosts


def _sentence(text: str, status: int) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(text, status)


def _same(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode(), expected.encode())


def cookie_name(port: int) -> str:
    """A browser sends a cookie to every port of a machine, so each studio has a name of its own."""
    return f"tacit_studio_{port}"


@contextmanager
def entrance(workspace: Workspace, url: str) -> Iterator[Path]:
    """A page for its owner alone that leads to the address with the token.

    The browser is started with its path, because everybody can list the arguments of a command.
    """
    page = workspace.root / "open-studio.html"
    write_secret(page, _LEADING.format(url).encode())
    try:
        yield page
    finally:
        page.unlink(missing_ok=True)


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
