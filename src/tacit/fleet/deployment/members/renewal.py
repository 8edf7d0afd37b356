"""Renew what gets old: the services' certificates and their sealing keys.

A certificate is renewed in two steps, so that nobody is cut off between them. `prepare` makes the
next one; a running service announces it to its nodes over the connection that they trust already,
and its operator gives it to the other services (`trust`). `switch` puts it in use, and the running
service follows. Sealing keys are part of the plan: `new_sealing_key` makes one for the next run.
"""

from __future__ import annotations

from pathlib import Path

from tacit.errors import TacitError
from tacit.fleet.deployment.seal import new_key
from tacit.system.certificates import also_trust, common_name, days_left, host_names, self_signed
from tacit.system.files import move_synced, write_atomic, write_secret

PARTS = ("shuffler", "analyser", "server", "node")
_PAIRS = {"shuffler": ("tls", "client"), "analyser": ("tls",), "server": ("tls",)}
TRUSTED_SERVICES = ("shuffler", "analyser", "server")
_TRUSTED = {
    "node": TRUSTED_SERVICES,
    "shuffler": ("analyser",),
    "analyser": ("shuffler",),
    "server": ("shuffler", "analyser"),
}


def part_of(folder: Path) -> str:
    """Whose folder it is."""
    for part in PARTS:
        if (folder / f"{part}.toml").exists():
            return part
    raise TacitError(
        f"{folder} is not the folder of a node or service; it has no .toml of {', '.join(PARTS)}."
    )


def prepare(folder: Path) -> list[Path]:
    """Make the next certificates of a service beside the present ones; returns their paths."""
    made = []
    for name in _pairs(folder):
        present, following = folder / f"{name}.crt", folder / f"{name}-next.crt"
        if following.exists() and days_left(following) > 0:
            made.append(following)  # asked twice: the announced one stays
            continue
        pair = self_signed(common_name(present), hosts=host_names(present))
        pair.write(certificate=following, key=folder / f"{name}-next.key")
        made.append(following)
    return made


def switch(folder: Path) -> list[Path]:
    """Put the prepared certificates in use; a running service follows within seconds."""
    names = [name for name in _pairs(folder) if (folder / f"{name}-next.crt").exists()]
    if not names:
        raise TacitError(f"{folder} holds no next certificate; run 'tacit fleet renew' first.")
    for name in names:
        key = folder / f"{name}-next.key"
        if key.exists():  # otherwise a crash came between these two lines
            move_synced(key, folder / f"{name}.key")
        move_synced(folder / f"{name}-next.crt", folder / f"{name}.crt")
    return [folder / f"{name}.crt" for name in names]


def trust(folder: Path, *, of: str, certificate: Path) -> bool:
    """Let one part of a fleet trust another certificate of a service, beside the present one."""
    part = part_of(folder)
    if of not in _TRUSTED[part]:
        known = " or ".join(_TRUSTED[part])
        raise TacitError(
            f"a {part} trusts certificates of {known}, not of {of[:40]!r}; name {known}."
        )
    try:
        content = certificate.read_bytes()
    except OSError as error:
        raise TacitError(f"cannot read {certificate}: {error.strerror}; check the path.") from error
    return also_trust(folder / f"{of}.crt", content)


def new_sealing_key(folder: Path) -> bytes:
    """A sealing key for the next run; returns the public half, which goes into its plan."""
    part = part_of(folder)
    if part not in ("shuffler", "analyser"):
        raise TacitError(f"a {part} has no sealing key; shuffler and analyser have one.")
    private, public = new_key()
    write_secret(folder / "sealing-next.key", private)
    write_atomic(folder / "sealing-next.pub", public.hex().encode())
    return public


def _pairs(folder: Path) -> tuple[str, ...]:
    part = part_of(folder)
    if part == "node":
        raise TacitError("a node has a signing key and no certificate; its key is renewed instead.")
    return _PAIRS[part]
