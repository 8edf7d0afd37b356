"""A node's own side of joining, leaving and changing its key.

    python -m tacit.fleet.deployment.members.join FOLDER CODE [CODE]

NumPy, httpx and cryptography only, as for the light node, which is what most devices run.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tacit.errors import TacitError
from tacit.fleet.deployment.batches.signatures import new_signing_key, public_half
from tacit.fleet.deployment.config import NodeConfig, RunDescription, read_config, read_run
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.members import statements
from tacit.fleet.deployment.members.invitations import Code
from tacit.fleet.deployment.members.lists import SERVICES, check_name
from tacit.fleet.reports.mechanisms import report_of
from tacit.system.certificates import fingerprint, trust_only
from tacit.system.files import move_synced, write_atomic, write_secret

_TIMEOUT_SECONDS = 30.0
_START_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a device has joined, for its owner to look at before it takes part."""

    name: str
    run: str
    mechanism: str
    epsilon: float
    delta: float
    services: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowerAddress:
    """Where a node that uses Flower finds its server."""

    server: str
    certificate: Path
    runtime_port: int


def join(
    folder: Path, codes: Sequence[str], *, person: str = "", flower: FlowerAddress | None = None
) -> Joined:
    """Join a fleet with the code of its shuffler and, under `distributed`, of its analyser.

    The plan must be the same at both. After a failure the same line may be run again.
    """
    if (folder / "node.toml").exists():
        raise TacitError(f"{folder} is a node already; choose a new folder.")
    read = [Code.read(code) for code in codes]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "signing.key").exists():
        write_secret(folder / "signing.key", new_signing_key()[0])
    public = public_half((folder / "signing.key").read_bytes())
    answers = {}
    for code in read:
        answer = _redeem(folder, code, public)
        answers[answer["part"]] = (code, answer)
    fleet = _agreed_plan(folder, {part: answer for part, (_, answer) in answers.items()})
    name = answers["shuffler"][1]["name"]
    urls = {f"{part}_url": code.url for part, (code, _) in answers.items()}
    _write_config(folder, name, urls, person=person, flower=flower)
    return Joined(
        name=name,
        run=fleet.run,
        mechanism=fleet.plan.mechanism,
        epsilon=fleet.plan.epsilon,
        delta=fleet.plan.delta,
        services=tuple(answers),
    )


def leave(folder: Path) -> list[str]:
    """Tell the services that this node takes part no longer; returns which have heard it."""
    config = read_config(folder / "node.toml", NodeConfig)
    return _state(config, "leave")


def renew_key(folder: Path) -> list[str]:
    """Replace the node's signing key at every service and on its disk; may be run again.

    A report that is under way with the old key may be left out of its round.
    """
    config = read_config(folder / "node.toml", NodeConfig)
    following = config.signing_key.with_name("signing-next.key")
    if not following.exists():
        write_secret(following, new_signing_key()[0])
    told = _state(config, "rekey", following=following.read_bytes())
    move_synced(following, config.signing_key)
    return told


def _redeem(folder: Path, code: Code, public: bytes) -> dict[str, str]:
    """Show one service its code; its certificate must be the one that the code names."""
    where = urlsplit(code.url)
    waiting = folder / "joining.crt"
    try:
        pem = _certificate_at(where.hostname or "", where.port or 0)
        write_atomic(waiting, pem.encode())
        if fingerprint(waiting) != code.fingerprint:
            raise TacitError(
                f"what answers at {code.url} is not the service that made this code; nothing was "
                "sent, ask its operator."
            )
        body = {"secret": code.secret.hex(), "key": public.hex()}
        answer = _post(code.url, waiting, "/v1/join", body)
        check_name(answer.get("name", ""))
        if answer.get("part") not in SERVICES or "plan" not in answer:
            raise TacitError(f"{code.url} did not answer as a service of a fleet does.")
        move_synced(waiting, folder / f"{answer['part']}.crt")
    except OSError as error:
        raise TacitError(
            f"the service at {code.url} does not answer ({error}); try again when it runs."
        ) from error
    finally:
        waiting.unlink(missing_ok=True)
    return answer


def _certificate_at(host: str, port: int) -> str:
    """What the service shows; one that is just starting is given time."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return ssl.get_server_certificate((host, port), timeout=_TIMEOUT_SECONDS)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def _agreed_plan(folder: Path, answers: dict[str, dict[str, str]]) -> RunDescription:
    """The plan, if every service states the same; a service alone must not choose it."""
    if "shuffler" not in answers:
        raise TacitError("the shuffler's code is missing; ask its operator for one too.")
    plans = {answer["plan"] for answer in answers.values()}
    names = {answer["name"] for answer in answers.values()}
    if len(plans) != 1 or len(names) != 1:
        raise TacitError(
            "shuffler and analyser gave different plans or different names for this node; do not "
            "join, and ask both operators."
        )
    draft = folder / "plan.toml"
    write_atomic(draft, plans.pop().encode())
    fleet = read_run(draft)
    if report_of(fleet.plan).analyser_admits_nodes and "analyser" not in answers:
        raise TacitError(
            f"under {fleet.plan.mechanism} shuffler and analyser each decide who takes part; run "
            "the same line again with the analyser's code too."
        )
    return fleet


def _write_config(
    folder: Path,
    name: str,
    urls: dict[str, str],
    *,
    person: str,
    flower: FlowerAddress | None,
) -> None:
    values: dict[str, str | int] = {
        "plan": "plan.toml",
        "name": name,
        "data": "data.npz",
        **urls,
        **{key.replace("_url", "_certificate"): f"{key.split('_')[0]}.crt" for key in urls},
        "signing_key": "signing.key",
        "state": "state",
    }
    if person:
        values["person"] = person
    if flower is not None:
        private, public = node_identity()
        write_secret(folder / "identity", private)
        write_atomic(folder / "identity.pub", public)
        write_atomic(folder / "server.crt", flower.certificate.read_bytes())
        values |= {
            "identity": "identity",
            "server": flower.server,
            "server_certificate": "server.crt",
            "runtime_port": flower.runtime_port,
        }
    # Texts and numbers look the same in JSON and TOML, and a device has no writer of TOML.
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    write_atomic(folder / "node.toml", lines.encode())


def _state(config: NodeConfig, kind: statements.Kind, *, following: bytes = b"") -> list[str]:
    """Tell every service; `following` is the private half of the key that the node changes to."""
    run, key = read_run(config.plan).run, public_half(following) if following else b""

    def said(private: bytes, part: str) -> str:
        return statements.signed(private, kind, part=part, run=run, node=config.name, key=key)

    told = []
    for part, url, certificate in _services(config):
        body = {"node": config.name, "signature": said(config.signing_key.read_bytes(), part)}
        if following:
            body |= {"key": key.hex(), "proof": said(following, part)}
        _post(url, certificate, f"/v1/{kind}", body)
        told.append(part)
    return told


def _services(config: NodeConfig) -> list[tuple[str, str, Path]]:
    """The services that keep a list of nodes; the analyser first, whose sums need the keys."""
    found = [("shuffler", config.shuffler_url, config.shuffler_certificate)]
    if config.analyser_url and config.analyser_certificate is not None:
        found.insert(0, ("analyser", config.analyser_url, config.analyser_certificate))
    return found


def _post(url: str, certificate: Path, path: str, body: dict[str, str]) -> dict[str, str]:
    try:
        response = httpx.post(
            f"{url}{path}",
            json=body,
            verify=trust_only(certificate),
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )
        answer: dict[str, str] = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise TacitError(
            f"the service at {url} does not answer ({type(error).__name__}); try again later."
        ) from error
    if response.status_code != httpx.codes.OK:
        raise TacitError(f"{url} refuses: {answer.get('refused', response.status_code)}")
    return answer


def main(arguments: list[str]) -> int:
    """`join FOLDER CODE [CODE]`, for installations without the command line's packages."""
    try:
        folder, *codes = arguments
        joined = join(Path(folder), codes)
    except ValueError as error:
        said = str(error) if isinstance(error, TacitError) else "usage: join FOLDER CODE [CODE]"
        sys.stderr.write(f"tacit: {said}\n")
        return 2
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(f"{joined.name} joined run {joined.run}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
