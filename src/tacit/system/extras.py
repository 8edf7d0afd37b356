"""Packages that not every installation has: which extra brings them, and what to type.

`pip install tacit-ts` is light; networks, secure computation, services, charts and importers are
extras. What needs one asks for it first, so that its absence is one sentence and no traceback.
Standard library only, because devices carry this module.
"""

from __future__ import annotations

import importlib.util
import sys

from tacit.errors import TacitError

# Modules by extra. Where two extras bring a module, the first one is named.
EXTRAS = {
    "networks": ("torch",),
    "silo": ("spu", "jax", "jaxlib", "tomli_w"),
    "studio": ("fastapi", "uvicorn", "starlette", "jinja2", "prometheus_client"),
    "postgres": ("psycopg",),
    "fleet": ("flwr", "httpx"),
    "charts": ("altair", "vl_convert"),
    "import": ("edfio", "wfdb", "h5py", "pyarrow"),
    "arena": ("ray",),
}
CORE = (
    "numpy", "scipy", "sklearn", "threadpoolctl", "aeon", "dp_accounting", "typer", "rich",
    "safetensors", "cryptography", "pydantic",
)  # fmt: skip


class MissingExtra(TacitError, ImportError):
    """Something that this installation lacks; the message says what to type."""


def needs(extra: str, *modules: str, what: str) -> None:
    """Refuse, in one sentence, what cannot work because a module of an extra is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(_sentence(what, module, extra))


def missing(error: ModuleNotFoundError) -> MissingExtra | None:
    """The sentence for an import that failed in a command; None if no extra brings the module."""
    module = (error.name or "").split(".")[0]
    extra = next((extra for extra, brought in EXTRAS.items() if module in brought), None)
    if extra is None and module not in CORE:
        return None
    return MissingExtra(_sentence("this command", module, extra))


def _sentence(what: str, module: str, extra: str | None) -> str:
    if extra == "silo" and sys.version_info >= (3, 12):
        return (
            f"{what} needs {module}, which exists for Python 3.11 only; make an environment with "
            "that version and type: pip install 'tacit-ts[silo]'"
        )
    package = "tacit-ts" if extra is None else f"'tacit-ts[{extra}]'"
    return f"{what} needs {module}, which is not installed; type: pip install {package}"
