"""Compile JAX functions for the engine once, and refuse programs that would open values.

Compiled programs are cached by function, static arguments, shapes, versions and the source text of
the package; on disk too, so that a second run (or the next party on one machine) need not compile.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.silo.plan import canonical, running_versions
from tacit.silo.secure.session import JaxFunction, Shared, Static
from tacit.system.files import write_secret
from tacit.system.locks import locked

# Operations that the engine computes without opening anything. Sorting and top-k are missing on
# purpose: the engine opens shuffled comparisons for them, and ties leak.
_NAMES = """
    abs add and argmax bitcast_convert broadcast broadcast_as case ceil clamp complex concatenate
    constant convert convolution cosine divide dot dot_general dynamic_slice dynamic_update_slice
    epsilon equal exponential exponential_minus_one floor free greater greater_equal if imag iota
    less less_equal log log_plus_one logistic maximum maxpool_scatter minimum multiply negate not
    not_equal or pad popcnt power real reciprocal reduce reduce_window remainder reshape return
    reverse round_nearest_afz round_nearest_even rsqrt select select_and_scatter shift_left
    shift_right_arithmetic shift_right_logical sign sine slice sqrt subtract tanh transpose while
    xor
"""
# Of the custom calls only the one that changes how a share is held; `spu.reveal` is another.
OBLIVIOUS = frozenset(_NAMES.split()) | {"custom_call @spu.prefer_a"}
KEEP_DAYS = 30
COMPILE_SECONDS = 3600.0  # longer than any program takes to compile
_OPERATION = re.compile(r"\bpphlo\.(custom_call @[\w.]+|[a-z0-9_]+)")
_TYPES = frozenset({"secret", "version"})
_SECRET_UPDATE = re.compile(r"pphlo\.dynamic_update_slice[^\n]*: \(([^\n]*)\) ->")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The engine's code of one function for given shapes, and the shapes that come out."""

    code: bytes
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    many: bool

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the code: equal at all computing parties, or they do not run it."""
        return hashlib.sha256(self.code).hexdigest()


def check_oblivious(code: str, *, name: str) -> None:
    """Refuse code with an operation that opens values along the way, or that is not known here."""
    unknown = sorted(set(_OPERATION.findall(code)) - OBLIVIOUS - _TYPES)
    if unknown:
        raise TacitError(
            f"'{name}' uses {', '.join(unknown)}, which may open secret values; "
            "write it with comparisons and selections."
        )
    for operands in _SECRET_UPDATE.findall(code):
        # Operand and update are the first two types; the rest are the indices.
        if any("secret" in kind for kind in operands.split(", ")[2:]):
            raise TacitError(f"'{name}' updates an array at a secret index, which opens the index.")


def family_sources() -> list[Path]:
    """Every source file of the family: a compiled function may call into any of them."""
    return sorted(Path(__file__).parents[1].rglob("*.py"))


@lru_cache(maxsize=64)
def _source_fingerprint(module_file: str) -> str:
    digest = hashlib.sha256(Path(module_file).read_bytes())
    for path in family_sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_key(fn: JaxFunction, shared: Sequence[Shared], static: Static) -> str:
    """Everything that the compiled code depends on, as one hexadecimal name."""
    code = inspect.unwrap(fn)
    if "<" in code.__qualname__:
        raise TacitError(f"'{code.__qualname__}' must be a function defined at module level.")
    described = {
        "function": f"{code.__module__}.{code.__qualname__}",
        "source": _source_fingerprint(inspect.getsourcefile(code) or __file__),
        "static": {key: repr(value) for key, value in static.items()},
        "inputs": [[list(s.shape), s.dtype] for s in shared],
        "versions": running_versions(),
    }
    return hashlib.sha256(canonical(described).encode()).hexdigest()


def compile_function(fn: JaxFunction, shared: Sequence[Shared], static: Static) -> Compiled:
    """Compile without any cache; needs 64-bit JAX."""
    import numpy as np
    import spu.utils.frontend as frontend
    from spu import libspu

    dummies = [np.zeros(s.shape, dtype=s.dtype) for s in shared]
    names = [f"in{i}" for i in range(len(shared))]
    secret = [libspu.Visibility.VIS_SECRET] * len(shared)
    bound = partial(fn, **static)
    executable, out = frontend.compile(
        frontend.Kind.JAX,
        bound,
        dummies,
        {},
        names,
        secret,
        lambda o: [f"out{i}" for i in range(len(o))],
    )
    check_oblivious(executable.code.decode(), name=fn.__name__)
    many = isinstance(out, tuple)
    outputs = tuple((tuple(o.shape), str(o.dtype)) for o in (out if many else (out,)))
    return Compiled(bytes(executable.code), outputs, many)


class Compiler:
    """Compiled functions in memory and, with a `folder`, on disk."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        if folder is not None:
            _prune(folder)
        self._known: dict[str, Compiled] = {}
        self.compiled = 0

    def get(self, fn: JaxFunction, shared: Sequence[Shared], static: Static) -> Compiled:
        """The compiled function, from memory, from disk or made now."""
        key = cache_key(fn, shared, static)
        if key not in self._known:
            self._known[key] = self._from_disk_or_new(key, fn, shared, static)
        return self._known[key]

    def _from_disk_or_new(
        self, key: str, fn: JaxFunction, shared: Sequence[Shared], static: Static
    ) -> Compiled:
        if self._folder is None:
            self.compiled += 1
            return compile_function(fn, shared, static)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{key}.json"
        # One party of a machine compiles, the others wait for its result.
        with locked(self._folder / f"{key}.lock", timeout_seconds=COMPILE_SECONDS):
            found = _read(path)
            if found is None:
                self.compiled += 1
                found = compile_function(fn, shared, static)
                _write(path, found)
        check_oblivious(found.code.decode(), name=fn.__name__)
        return found


def _prune(folder: Path) -> None:
    """Delete programs that nobody used for a month: every new version leaves its own behind."""
    oldest = time.time() - KEEP_DAYS * 86400
    for path in folder.glob("*"):
        with suppress(OSError):  # another party may prune as well
            if path.stat().st_mtime < oldest:
                path.unlink()


def _read(path: Path) -> Compiled | None:
    """A cached program, or None where there is none or it was damaged (then it is made again)."""
    try:
        plain: dict[str, Any] = json.loads(path.read_text())
        path.touch()
        outputs = tuple((tuple(shape), str(dtype)) for shape, dtype in plain["outputs"])
        found = Compiled(plain["code"].encode(), outputs, bool(plain["many"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.fingerprint == plain.get("sha256") else None


def _write(path: Path, compiled: Compiled) -> None:
    plain = {
        "code": compiled.code.decode(),
        "outputs": compiled.outputs,
        "many": compiled.many,
        "sha256": compiled.fingerprint,
    }
    write_secret(path, json.dumps(plain).encode())


def default_cache() -> Path:
    """The user's cache folder for compiled programs; it holds no data and no keys."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "tacit" / "silo"
