"""`tacit serve` and `tacit send`: the two ends of releases that travel."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.collector import KeepCountDays, KeepDays
from tacit.cli.common import JsonFlag, LogFormatOption, check_new_file, emit
from tacit.cli.local import BundleArgument, load_bundle
from tacit.errors import TacitError
from tacit.system.extras import needs
from tacit.system.logs import log_to_standard_error

if TYPE_CHECKING:
    from tacit.local.collector.server import Tls
    from tacit.local.collector.storage.store import Store
    from tacit.local.model import LocalModel


def serve_command(
    bundle: BundleArgument,
    store: Annotated[
        str | None,
        typer.Option("--store", help="Collect releases there: FILE.db or postgresql://…"),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port.")] = 8765,
    cert: Annotated[
        Path | None, typer.Option("--cert", help="Certificate (PEM); without it one is made.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Private key of --cert (PEM).")] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--certificate-name", help="Name or address that devices use, for a made certificate."
        ),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option("--files", help="Folder for a made certificate; default: the store's."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Plain HTTP, on this machine only.")
    ] = False,
    reader_token: Annotated[
        Path | None,
        typer.Option(
            "--reader-token",
            help="File with the token for dashboard, counts and metrics; made if missing. "
            "Needed unless only this machine can connect.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", help="Web page whose script may upload: https://host."),
    ] = None,
    keep_days: KeepDays = None,
    keep_count_days: KeepCountDays = None,
    log_format: LogFormatOption = "text",
    as_json: JsonFlag = False,
) -> None:
    """Serve a bundle; with --store, collect the releases of many devices.

    Example: `tacit serve gunpoint --store releases.db --keep-days 30`
    """
    needs("studio", "starlette", "uvicorn", "prometheus_client", what="'tacit serve'")
    log_to_standard_error(log_format)
    if store is None:
        _check_needless(
            {
                "--cert": cert,
                "--key": key,
                "--certificate-name": names,
                "--files": files,
                "--insecure": insecure or None,
                "--reader-token": reader_token,
                "--allow-origin": allow_origin,
                "--keep-days": keep_days,
                "--keep-count-days": keep_count_days,
            }
        )
        _serve_without_store(load_bundle(bundle), host, port, as_json=as_json)
        return
    needs("studio", "jinja2", what="'tacit serve --store'")
    from tacit.local.collector.retention import Retention

    retention = Retention(releases_days=keep_days, counts_days=keep_count_days)
    origins = tuple(_origin(one) for one in allow_origin or ())
    _check_access(host, cert, key, reader_token, insecure=insecure)

    def tls() -> Tls | None:
        folder = files or _folder(store)
        made = _tls(cert, key, folder=folder, host=host, names=tuple(names or ()))
        return None if insecure else made

    _collect(
        load_bundle(bundle),
        store,
        bound=(host, port),
        tls=tls,
        as_json=as_json,
        reader_token=None if reader_token is None else _token(reader_token),
        allow_origins=origins,
        retention=retention,
    )


def _check_needless(given: dict[str, object]) -> None:
    """Refuse what a service without a store would ignore, above all what protects it."""
    needless = [name for name, value in given.items() if value]
    if needless:
        raise TacitError(
            f"{', '.join(needless)} is for a collector; give --store too, or leave it out: without "
            "a store the service keeps nothing and uses plain HTTP."
        )


def _serve_without_store(model: LocalModel, host: str, port: int, *, as_json: bool) -> None:
    from tacit.local.collector.server import bound_socket, serve

    listening = bound_socket(host, port)
    taken = listening.getsockname()[1]
    emit({"host": host, "port": taken, "guarantee": model.guarantee}, as_json=as_json)
    serve(model, listening)


def _collect(
    model: LocalModel,
    address: str,
    *,
    bound: tuple[str, int],
    tls: Callable[[], Tls | None],
    as_json: bool,
    **settings: Any,
) -> None:
    """Open everything that may be refused, say where it listens, and serve."""
    from tacit.local.collector.server import bound_socket, collecting_server, run
    from tacit.local.collector.service import Collector
    from tacit.local.collector.storage.store import Store
    from tacit.report.collector_pages import collector_pages

    with ExitStack() as opened:
        listening = opened.enter_context(bound_socket(*bound))
        store = opened.enter_context(closing(Store.open(address, model=model)))
        files = tls()
        collector = opened.enter_context(closing(Collector(model, store)))
        server = collecting_server(collector, tls=files, pages=collector_pages(model), **settings)
        taken = listening.getsockname()[1]
        emit(_address(bound[0], taken, files, store, model), as_json=as_json)
        run(server, listening)


def _check_access(
    host: str, cert: Path | None, key: Path | None, reader_token: Path | None, *, insecure: bool
) -> None:
    from tacit.local.collector.server import is_loopback

    if insecure and not is_loopback(host):
        raise TacitError(f"--insecure serves this machine only, and {host} is open to others.")
    if (cert is None) != (key is None):
        raise TacitError("--cert and --key belong together; give both or none.")
    if reader_token is None and not is_loopback(host):
        raise TacitError(
            f"others can connect to {host}; give --reader-token FILE, which keeps the dashboard "
            "and the counts to its holders."
        )


def _address(
    host: str, port: int, tls: Tls | None, store: Store, model: LocalModel
) -> dict[str, Any]:
    from tacit.local.collector.storage.database import shown
    from tacit.system.certificates import fingerprint

    scheme = "http" if tls is None else "https"
    return {
        "host": host,
        "port": port,
        "url": f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}",
        "store": shown(store.address),
        "collector": store.collector,
        "certificate": None if tls is None else tls.certificate,
        "sha256": None if tls is None else fingerprint(tls.certificate),
        "guarantee": model.guarantee,
    }


def _tls(
    cert: Path | None, key: Path | None, *, folder: Path, host: str, names: tuple[str, ...]
) -> Tls:
    from tacit.local.collector.server import Tls, own_certificate

    if cert is not None and key is not None:
        return Tls(certificate=cert, key=key)
    local = ("localhost", "127.0.0.1", "::1")
    given = () if host in ("0.0.0.0", "::") else (host,)
    return own_certificate(folder, names=tuple(dict.fromkeys((*names, *given, *local))))


def _folder(store: str) -> Path:
    """Where a made certificate is kept: beside a file, else in a folder of its own here."""
    return Path("tacit-collector") if "://" in store else Path(f"{store}.files")


def _token(path: Path) -> str:
    from tacit.system.certificates import check_private
    from tacit.system.files import write_secret

    if not path.exists():
        check_new_file(path)
        write_secret(path, f"{secrets.token_urlsafe(24)}\n".encode())
    check_private(path)
    token = path.read_text(encoding="utf-8").strip()
    if len(token) < 16:
        raise TacitError(f"the token in {path} is shorter than 16 characters; remove the file.")
    return token


def _origin(text: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if (
        parts.scheme not in ("https", "http")
        or not parts.netloc
        or text != (f"{parts.scheme}://{parts.netloc}")
    ):
        raise TacitError(f"--allow-origin must look like https://host[:port], got {text!r}.")
    return text


def send_command(
    releases: Annotated[
        list[Path], typer.Argument(metavar="RELEASES", help="Files that 'tacit release' wrote.")
    ],
    to: Annotated[str, typer.Option("--to", help="Address of the collector: https://host:8765.")],
    code: Annotated[
        str | None, typer.Option("--code", help="One-time code, for the first time.")
    ] = None,
    key: Annotated[
        Path, typer.Option("--key", help="File of this device's key; made when it enrols.")
    ] = Path("device-key.json"),
    trust: Annotated[
        Path | None, typer.Option("--trust", help="The collector's own certificate.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--as", help="A name that never changes, for files without an id."),
    ] = None,
    patience: Annotated[
        float, typer.Option("--patience", min=0.0, help="Seconds to try before giving up.")
    ] = 120.0,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow http:// on this machine.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Send releases to a collector; what it has already counts once.

    Example: `tacit send releases.json --to https://host:8765 --code K3QF-7YTA-ZB2M-XXWD`
    """
    from tacit.local.collector.client import CollectorClient, releases_of

    parts = list(releases_of(*releases, name=name))  # all are read before anything is sent
    with CollectorClient(to, key=key, trust=trust, insecure=insecure, patience=patience) as client:
        if not client.enrolled:
            if code is None:
                raise TacitError("this device is not enrolled; give --code, from the operator.")
            client.enrol(code)
        totals = {"stored": 0, "repeated": 0}
        for part in parts:
            answer = client.send(part)
            totals = {kind: totals[kind] + answer[kind] for kind in totals}
        device = client.name
    emit({**totals, "device": device, "to": to, "key": key}, as_json=as_json)
