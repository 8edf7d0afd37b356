"""The workspace's collectors: one store per model, behind the same service that `tacit serve` runs.

Each answers below `/collect/NAME`: its API, its dashboard, and a device for this browser. A store
that another collector writes to is only opened a second time; SQLite sees to the rest.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from tacit.data import Dataset
from tacit.errors import TacitError
from tacit.local.collector.app import create_app
from tacit.local.collector.devices import make_codes
from tacit.local.collector.service import Collector
from tacit.local.collector.storage.store import Store
from tacit.local.model import LocalModel, load_model
from tacit.report.collector_pages import Examples, collector_pages
from tacit.studio.datasets import load_named, near_names
from tacit.studio.jobs import list_jobs
from tacit.studio.workspace import Workspace, checked_name

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

_EXAMPLES = 8


class Collectors:
    """All collectors that were asked for since the studio started."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._open: dict[str, tuple[Collector, Starlette]] = {}
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the collector that its path names."""
        from starlette.concurrency import run_in_threadpool

        name = checked_name(scope["path_params"]["store"])
        _, app = await run_in_threadpool(self._opened, name)
        await app(scope, receive, send)

    def of(self, name: str) -> Collector:
        """The collector of a store, or of a model that has none yet."""
        return self._opened(name)[0]

    def new_code(self, name: str) -> str:
        """A one-time code for a device."""
        return make_codes(self.of(name).store, count=1, days=1.0)[0]

    def close(self) -> None:
        """Let go of all stores."""
        with self._lock:
            for collector, _ in self._open.values():
                collector.close()
            self._open.clear()

    def _opened(self, name: str) -> tuple[Collector, Starlette]:
        with self._lock:
            if name not in self._open:
                path = self._workspace.place("stores", f"{name}.db")
                model_name, model = self._model(name)
                collector = Collector(model, Store.open(str(path), model=model))
                examples = self._examples(model_name, model)
                onward = [(f"/population/{quote(name)}", "See what all devices add up to"),
                          ("/device", "Be another device")]  # fmt: skip
                pages = collector_pages(model, examples=examples, onward=onward)
                self._open[name] = collector, create_app(model, collector=collector, pages=pages)
            return self._open[name]

    def _model(self, name: str) -> tuple[str, LocalModel]:
        """The model whose releases a store holds; for a new store the model of its name."""
        path = self._workspace.place("stores", f"{name}.db")
        if not path.exists():
            return name, load_model(self._workspace.existing("models", name) / "model.tacit")
        store = Store.open(str(path))
        identity = store.meta["model"]
        store.close()
        for other in local_models(self._workspace):
            model = load_model(self._workspace.root / "models" / other / "model.tacit")
            if model.identity == identity:
                return other, model
        raise TacitError(
            f"{path.name} holds releases of model {identity}, which is not in models/; copy its "
            "bundle there."
        )

    def _examples(self, model_name: str, model: LocalModel) -> Examples:
        """Test series of the data that the model was trained on, if they are here."""
        name = trained_on(self._workspace, model_name, model)
        if name is None:
            return ()
        data = load_named(self._workspace, name)
        step = max(1, len(data.X_test) // _EXAMPLES)
        rows = range(0, len(data.X_test), step)[:_EXAMPLES]
        return [(f"{data.name}, test series {row}", np.asarray(data.X_test[row])) for row in rows]


def local_models(workspace: Workspace) -> list[str]:
    """Bundles in the workspace that make releases."""
    names = workspace.names("models")
    return [name for name in names if (workspace.root / "models" / name / "model.tacit").is_file()]


def store_names(workspace: Workspace) -> list[str]:
    """Stores that hold releases, the newest first."""
    return [name.removesuffix(".db") for name in workspace.names("stores", "*.db")]


def trained_on(workspace: Workspace, model_name: str, model: LocalModel) -> str | None:
    """The data set of the job that made this model; else the first whose series fit it, if any."""
    made = (job for job in list_jobs(workspace) if job.about.get("model") == model_name)
    names = [job.about["data"] for job in made if "data" in job.about] + near_names(workspace)
    return next((name for name in names if _named_fits(workspace, name, model)), None)


def _named_fits(workspace: Workspace, name: str, model: LocalModel) -> bool:
    """A file that is gone, or has no labels, is passed over: another one may fit."""
    try:
        return fits(load_named(workspace, name), model)
    except TacitError:
        return False


def fits(data: Dataset, model: LocalModel) -> bool:
    """Whether a model can read the series of a data set."""
    return data.X_test.shape[1:] == (model.n_channels, model.n_timepoints)


def budgets_left(
    windows: list[tuple[int, int]], *, epsilon: float, budget: float
) -> dict[str, Any]:
    """What devices have left of `budget` after the releases that a store holds of them.

    A bound from below on what was spent: a device may have released elsewhere too.
    """
    if not budget > 0.0:
        raise TacitError(f"the budget of a device must be above 0, got {budget!r}.")
    most = max((w for w, _ in windows), default=0)
    through = sum(n for w, n in windows if (w + 1) * epsilon > budget)
    return {"most": most, "left": max(0.0, budget - most * epsilon), "through": through}
