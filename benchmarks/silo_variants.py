"""FedST's Fig. 6 on real processes: all variants on a grid, and each step by itself.

    python benchmarks/silo_variants.py [--part search] [--part steps] [--out results/current]

search (Fig. 6f-i): the six variants of the federated search over M, N, n and candidates, one axis
at a time around M = 512, N = 100, n = 3, all on the same few candidates of length 0.6 N, because
many would take the basic protocol hours; `few` marks such a line, and the paper's default is 500.
steps (Fig. 6a-e): the distance (elementwise, dot), finding the minimum, the quality (ig-basic, ig,
f) and sorting alone, over M, N and n. Every line has wall time without compiling, and bytes; a line
of `search` also processor seconds of all parties from start to end, a line of `steps` those of P0
in the step. Each step runs twice, and the second time counts. A line that the file holds already
is not measured again, so a run may be stopped anywhere.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from silo_speed import (
    SEARCH_ONLY,
    VARIANTS,
    machine,
    run,
    run_parts,
    synthetic,
    write_line,
)

from tacit.silo.fedst import search
from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.quality import F_QUALITY, gain_keys, key_bits
from tacit.silo.fedst.settings import settings_from
from tacit.silo.party.localhost import run_federation
from tacit.silo.plan import Plan, default_protocol
from tacit.silo.secure.kernels import SORTED_LOW_BITS
from tacit.silo.secure.session import LocalInputs, ProgramResult, Session, Shared

FILE = "silo_variants.jsonl"
BASE = {"m": 512, "n": 100, "parties": 3, "candidates": 8}
AXES = {
    "m": (128, 256, 512, 1024),
    "n": (50, 100, 150, 200),
    "parties": (3, 4, 5),
    "candidates": (4, 8, 16),
}
STEPS: dict[str, dict[str, str]] = {
    "distance, elementwise": {"distance": "elementwise"},
    "distance, dot": {"distance": "dot"},
    "find-min": {},
    "quality, ig-basic": {"quality": "ig-basic"},
    "quality, ig by sorting": {"quality": "ig"},
    "sorting": {"quality": "ig"},
    "quality, f": {"quality": "f"},
}


def points(axes: tuple[str, ...]) -> Iterator[tuple[str, dict[str, int]]]:
    """The base, then every other size along one axis at a time."""
    yield "base", dict(BASE)
    for axis in axes:
        for value in AXES[axis]:
            if value != BASE[axis]:
                yield axis, BASE | {axis: value}


def key_of(line: dict[str, Any]) -> tuple[Any, ...]:
    """What a line measured."""
    return tuple(line[name] for name in ("part", "variant", *BASE))


def recorded(out: Path) -> set[tuple[Any, ...]]:
    """What the file holds already."""
    path = out / FILE
    lines = path.read_text().splitlines() if path.exists() else []
    return {key_of(json.loads(line)) for line in lines}


def part_search(cache: Path, out: Path) -> None:
    """Fig. 6f-i."""
    for axis, sizes in points(("m", "n", "parties", "candidates")):
        for variant, params in VARIANTS.items():
            head = {"part": "search", "variant": variant, "along": axis, **sizes, "few": True}
            if key_of(head) in recorded(out):
                continue
            length = [round(0.6 * sizes["n"])]
            alike = {"n_shapelets": 1, "lengths": length, "batch_size": 4, **SEARCH_ONLY}
            _, found, _ = run(**sizes, cache=cache, **(params | alike))
            kept = ("seconds_without_compiling", "cpu_seconds", "wall_seconds", "protocol")
            cost = {name: found[name] for name in kept}
            save(out, head | cost | {"bytes_sent_by_party": found["bytes_sent_by_party"]})


def part_steps(cache: Path, out: Path) -> None:
    """Fig. 6a-e."""
    for axis, sizes in points(("m", "n", "parties")):
        for step, params in STEPS.items():
            head = {"part": "steps", "variant": step, "along": axis, **sizes, "few": True}
            if key_of(head) not in recorded(out):
                save(out, head | measure_step(step, params, sizes, cache))


def measure_step(
    step: str, params: dict[str, str], sizes: dict[str, int], cache: Path
) -> dict[str, Any]:
    """One federation that runs the step twice; the costs of the second time, at P0."""
    inputs = synthetic(m=sizes["m"], n=sizes["n"], parties=sizes["parties"])
    length = round(0.6 * sizes["n"])
    settings = settings_from(
        {"n_candidates": sizes["candidates"], "lengths": [length], "n_shapelets": 1, **params}
    )
    plan = Plan(
        program="silo_variants:step_program",
        parties=tuple(f"P{p}" for p in range(sizes["parties"])),
        protocol=default_protocol(sizes["parties"]),
        classes=("0", "1"),
        series_length=sizes["n"],
        counts=tuple(len(own.X) for own in inputs),
        params={**settings.to_params(), "step": step},
    )
    return dict(run_federation(plan, inputs, cache=cache).info)


def step_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """Share everything, then run one step twice."""
    settings = {name: value for name, value in plan.params.items() if name != "step"}
    public = public_parameters(
        settings_from(settings),
        counts=plan.counts,
        n_classes=len(plan.classes),
        series_length=plan.series_length,
        n_channels=plan.n_channels,
    )
    own = search.prepare(session, inputs, public)
    data = search.share_data(session, own, public)
    run_step = _step(plan.params["step"], session, own, data, public)
    run_step()
    wall, cpu, sent = time.monotonic(), time.process_time(), session.bytes_sent
    compiled = session.compile_seconds
    run_step()
    wall = time.monotonic() - wall - (session.compile_seconds - compiled)
    return ProgramResult(
        info={
            "seconds_without_compiling": round(wall, 4),
            "cpu_seconds_of_P0": round(time.process_time() - cpu, 4),
            "bytes_sent_by_P0": session.bytes_sent - sent,
        }
    )


def minimum_over_windows(raw: Any) -> Any:
    """Find-Min of the paper: the least over all windows."""
    import jax.numpy as jnp

    return jnp.min(raw, axis=1)


def _step(
    step: str, session: Session, own: Any, data: search.SharedData, public: Any
) -> Callable[[], Any]:
    group = public.groups[0]
    if step.startswith("distance"):
        return lambda: search._group_distances(session, own, data, public, group)
    if step == "find-min":
        raw = _windows(session, own, public)
        return lambda: session.run(minimum_over_windows, raw)
    block, _ = search._group_distances(session, own, data, public, group)
    if step == "quality, f":
        return lambda: session.run_kernel(F_QUALITY, block, data.indicators)
    if step == "sorting":
        keys = _keys(session, data, public, block)
        n_bits = {"n_bits": key_bits(public.n_series)}
        return lambda: session.run_kernel(SORTED_LOW_BITS, keys, static=n_bits)
    return lambda: search._batch_gain(session, own, data, public, block, number=group[0])


def _windows(session: Session, own: Any, public: Any) -> Shared:
    """As many numbers as there are distances of candidates to windows of the others' series."""
    import numpy as np

    batch = public.batches[0]
    n_windows = public.encoding.series_length - batch.length + 1
    shape = (sum(public.counts[1:]), n_windows, batch.count)
    values = np.arange(int(np.prod(shape))).reshape(shape) % 2**20 if own.rank == 1 else None
    return session.share("windows", values, owner=1, shape=shape, limit=2**20)


def _keys(session: Session, data: search.SharedData, public: Any, block: Shared) -> Shared:
    import numpy as np

    shape = (block.shape[0], public.n_classes)
    classes = np.eye(public.n_classes, dtype=np.int64)[np.zeros(shape[0], dtype=int)]
    mine = classes if session.rank == 0 else None
    shared = session.share("candidate classes", mine, owner=0, shape=shape, limit=1)
    static = {"tie_seed": public.settings.seed}
    keys, _ = session.run(gain_keys, block, data.indicators, shared, static=static)
    found: Shared = keys
    return found


def save(out: Path, line: dict[str, Any]) -> None:
    """Append one line and say the essentials."""
    write_line(out / FILE, line | machine())
    costs = {key: line[key] for key in line if "seconds" in key or "bytes" in key}
    print(f"{line['variant']:24} {[line[name] for name in BASE]} {costs}", flush=True)


if __name__ == "__main__":
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    run_parts({"search": part_search, "steps": part_steps}, __doc__)
