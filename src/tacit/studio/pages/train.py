"""Train: choose data and budget, watch it, and end with a model and its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from tacit.errors import TacitError, check_epsilon
from tacit.studio.access import SCRIPTED_POLICY
from tacit.studio.datasets import data_argument, trainable_names
from tacit.studio.jobs import CHECKPOINT, FOLDER, list_jobs, start_job
from tacit.studio.pages.common import (
    Body,
    number_of,
    show,
    text_of,
    whole_of,
    workspace_of,
    written_page,
)
from tacit.studio.workspace import checked_name

router = APIRouter()
BUNDLE, PUBLISHED = "model.tacit", "published.tacit"
METHODS = ("softshape", "fedst", "timefl", "hybrid")


@router.get("/train")
def train(request: Request, data: str = "", method: str = METHODS[0]) -> HTMLResponse:
    """The form; fields may be filled by the address."""
    names = trainable_names(workspace_of(request))
    given = {key: request.query_params.get(key, value) for key, value in _FIELDS.items()}
    return show(
        request,
        "train.html",
        names=names,
        methods=_WAYS,
        chosen=data or names[0],
        method=method,
        given=given,
        models=workspace_of(request).names("models"),
    )


@router.post("/train")
def start(request: Request, body: Body) -> JSONResponse:
    """Start the training that the page describes."""
    workspace = workspace_of(request)
    method, name = text_of(body, "method"), checked_name(text_of(body, "data"))
    source = data_argument(workspace, name)
    options = options_of(method, body)
    option, room, ending = _place_of(method, body)
    out = workspace.free(room, f"{name}-{method}", ending)
    arguments = ["train", method, "--data", source, *options, option, str(out)]
    job = start_job(
        workspace,
        _TITLES[method].format(name),
        arguments,
        kind="train",
        method=method,
        data=name,
        room=room,
        model=out.stem if ending else out.name,
    )
    return JSONResponse({"job": job.id})


@router.get("/models/{name}")
def download(request: Request, name: str) -> FileResponse:
    """The file of a trained model; of a bundle the part that devices and servers need."""
    found = workspace_of(request).existing("models", name)
    files = [found / BUNDLE, found / PUBLISHED] if found.is_dir() else [found]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        raise TacitError(f"{name} holds no {BUNDLE}; train it again.")
    return FileResponse(file, filename=f"{name}.tacit")


@router.get("/pages/{name}")
def page(request: Request, name: str) -> HTMLResponse:
    """A page that a training wrote; it may run its own script, and load nothing."""
    workspace = workspace_of(request)
    file = workspace.existing("pages", f"{checked_name(name)}.html")
    made = (job.id for job in list_jobs(workspace) if name in job.about.values())
    job = next(made, None)
    back = (f"/jobs/{job}", "Back to how it was made") if job else ("/jobs", "Back to the jobs")
    return written_page(file, policy=SCRIPTED_POLICY, back=back)


_WAYS = (
    ("softshape", "local: devices release one noised symbol per series"),
    ("fedst", "silo: parties on this machine, secret shares over TLS"),
    ("timefl", "fleet: a simulated fleet, noised sums"),
    ("hybrid", "fleet, then local: devices train together, then each releases noised symbols"),
)
# What the fields hold when the page is opened without an address that says more.
_FIELDS = {
    "epsilon": "2", "delta": "1e-05", "release_epsilon": "2", "clients": "40", "rounds": "",
    "parties": "3", "candidates": "100", "shapelets": "20",
}  # fmt: skip
_RELEASES = ("label", "place", "vector", "shapes")
_FEATURES = ("shapelets", "intervals", "dictionary", "all")
_TITLES = {
    "softshape": "Local releases of {}",
    "fedst": "Silo on {}",
    "timefl": "Fleet on {}",
    "hybrid": "Fleet, then local, on {}",
}


def _place_of(method: str, body: dict[str, Any]) -> tuple[str, str, str]:
    """The option that says where the result goes, the room for it, and how its name ends.

    A silo's model is kept as a party keeps it; of a published fleet no model is kept.
    """
    if method == "fedst":
        return "--out", "federations", ""
    if method == "timefl" and _mode(body) == "published":
        return "--page", "pages", ".html"
    return "--out", "models", ""


def _mode(body: dict[str, Any]) -> str:
    return _one_of(body, "mode", ("sound", "published"))


def options_of(method: str, body: dict[str, Any]) -> list[str]:
    """The options of 'tacit train' for what the form says."""
    if method not in METHODS:
        raise TacitError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    return _OPTIONS[method](body)


def _local(body: dict[str, Any]) -> list[str]:
    if _mode(body) == "published":
        return ["--mode", "published", "--epsilon", _epsilon(body)]
    return [
        "--epsilon", _epsilon(body), "--release", _one_of(body, "release", _RELEASES),
        "--channel", _one_of(body, "channel", ("optimal", "krr")),
    ]  # fmt: skip


def _silo(body: dict[str, Any]) -> list[str]:
    return [
        "--parties", _whole(body, "parties"), "--candidates", _whole(body, "candidates"),
        "--shapelets", _whole(body, "shapelets"),
        "--features", _one_of(body, "features", _FEATURES),
        "--classifier", _one_of(body, "classifier", ("ridge", "logistic", "forest")),
    ]  # fmt: skip


def _fleet(body: dict[str, Any]) -> list[str]:
    if _mode(body) == "published":
        return ["--mode", "published", "--epsilon", _epsilon(body), *_dealt(body)]
    return [*_together(body), "--checkpoint", f"{FOLDER}/{CHECKPOINT}"]


def _hybrid(body: dict[str, Any]) -> list[str]:
    return [*_together(body), "--release-epsilon", _epsilon(body, "release_epsilon")]


def _together(body: dict[str, Any]) -> list[str]:
    """What a fleet's training is told, with or without releases after it."""
    return [
        "--epsilon", _epsilon(body), "--delta", f"{number_of(body, 'delta'):g}",
        "--mechanism", "distributed", *_dealt(body),
    ]  # fmt: skip


def _dealt(body: dict[str, Any]) -> list[str]:
    """Who takes part, with which series, and how often."""
    rounds = ["--rounds", _whole(body, "rounds")] if text_of(body, "rounds") else []
    split = _one_of(body, "split", ("iid", "subject", "dirichlet"))
    return ["--clients", _whole(body, "clients"), "--split", split, *rounds]


def _one_of(body: dict[str, Any], key: str, known: Sequence[str]) -> str:
    """A choice; the first is meant where nothing was said."""
    value = text_of(body, key, known[0])
    if value not in known:
        raise TacitError(f"{key} must be one of {', '.join(known)}, got {value!r}.")
    return value


def _epsilon(body: dict[str, Any], key: str = "epsilon") -> str:
    epsilon = number_of(body, key)
    check_epsilon(epsilon)
    return repr(epsilon)


def _whole(body: dict[str, Any], key: str) -> str:
    return str(whole_of(body, key))


_OPTIONS = {"softshape": _local, "fedst": _silo, "timefl": _fleet, "hybrid": _hybrid}
