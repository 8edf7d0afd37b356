"""Small protocol programs for tests of the engine; parties import them by path."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacit.silo.fedst import transform
from tacit.silo.fedst.program import fedst_program
from tacit.silo.fedst.secure_distances import NARROW_DISTANCES
from tacit.silo.plan import Plan
from tacit.silo.secure.kernels import SORTED_LOW_BITS
from tacit.silo.secure.session import LocalInputs, ProgramResult, Session

SCALE = 2**16


def minimum_distances(series: Any, shapelets: Any, *, n_windows: int) -> Any:
    """Integer squared distances of every series to every shapelet, the least over windows."""
    length = shapelets.shape[1]
    windows = jnp.stack([series[:, i : i + length] for i in range(n_windows)], axis=1)
    cross = jnp.einsum("nwl,kl->nkw", windows, shapelets)
    own = jnp.sum(windows**2, axis=2)[:, None, :]
    return jnp.min(own - 2 * cross, axis=2) + jnp.sum(shapelets**2, axis=1)


def join(*parts: Any) -> Any:
    return jnp.concatenate(parts, axis=0)


def encode(X: Any) -> Any:
    return np.round(X[:, 0] * SCALE).astype(np.int64)


def share_all(session: Session, inputs: LocalInputs, plan: Plan) -> list[Any]:
    return [
        session.share(
            f"series of {plan.parties[rank]}",
            encode(inputs.X) if rank == session.rank else None,
            owner=rank,
            shape=(plan.counts[rank], plan.series_length),
            limit=100 * SCALE,
        )
        for rank in range(session.n_parties)
    ]


def distances_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """All distances to the first `k` starts of P0's series, opened to P0."""
    k, length = plan.params["k"], plan.params["length"]
    candidates = encode(inputs.X)[:k, :length] if session.rank == 0 else None
    shapelets = session.share("shapelets", candidates, owner=0, shape=(k, length))
    everything = session.run(join, *share_all(session, inputs, plan))
    static = {"n_windows": plan.series_length - length + 1}
    for step in range(plan.params.get("repeats", 1)):
        session.progress(step, plan.params.get("repeats", 1), "distances")
        distances = session.run(minimum_distances, everything, shapelets, static=static)
    stop = session.announce(7 if session.rank == 0 else None, what="the number seven")
    found = session.reveal(distances, to=0, what="distances")
    return ProgramResult(
        arrays={} if found is None else {"distances": found},
        info={"stop": stop, "rank": session.rank},
    )


def misshapen_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """The second party shares four numbers where the plan says three."""
    mine = session.rank == 1
    shape = (4,) if mine else (3,)
    session.share("x", np.zeros(4, dtype=np.int64) if mine else None, owner=1, shape=shape)
    return ProgramResult()


def lying_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """The third party alters one word of what it sends to be opened."""
    from tacit.silo.secure import shares, spu_session

    value = np.arange(3) if session.rank == 0 else None
    shared = session.share("x", value, owner=0, shape=(3,))
    if session.rank == 2:

        def frame_of(share: Any) -> tuple[dict[str, Any], bytes]:
            header, payload = shares.frame_of(share)
            return header, payload[:-1] + bytes([payload[-1] ^ 1])

        vars(spu_session)["frame_of"] = frame_of
    session.reveal(shared, to=0, what="x")
    return ProgramResult()


def slow_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """Long enough to be killed or frozen in the middle: it says when it is there.

    Half the time the engine computes, half the time the protocols over replicated shares.
    """
    shared = share_all(session, inputs, plan)
    everything = session.run(join, *shared)
    series = session.share(
        "cube",
        encode(inputs.X)[:, None] if session.rank == 0 else None,
        owner=0,
        shape=(plan.counts[0], 1, plan.series_length),
    )
    row = session.share(
        "row",
        encode(inputs.X)[0] if session.rank == 0 else None,
        owner=0,
        shape=(plan.series_length,),
    )
    static = {
        "counts": (1,),
        "lengths": (plan.series_length,),
        "channels": (0,),
        "caps": (0,),
        "shifts": (4,),
    }
    for step in range(600):
        if step == 3:
            say_working()
        everything = session.run(double, everything)
        for _ in range(8):
            found = session.run_kernel(NARROW_DISTANCES, series, series, row, static=static)
            session.free(found)
        time.sleep(0.01)
    session.reveal(everything, to=0, what="everything")
    return ProgramResult()


def forgetful_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """FedST with so little room for intervals and words that they are sent twice."""
    transform.KEPT_VALUES = transform.BLOCK_VALUES = 400
    return fedst_program(session, inputs, plan)


def say_working() -> None:
    """A sign for the test, beside the party's own configuration (the log is in its folder)."""
    log = Path("/proc/self/fd/1").readlink()
    (log.parent.parent / "working").touch()


def double(x: Any) -> Any:
    return jnp.minimum(x, x * 2)


def sort_rows(x: Any) -> Any:
    return jnp.sort(x, axis=1)


def sorting_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """Uses an operation that opens comparisons: must be refused."""
    session.run(sort_rows, *share_all(session, inputs, plan)[:1])
    return ProgramResult()


def shift_by(x: Any, *, amount: int) -> Any:
    return x + amount


def diverging_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """Every party compiles other code: must be refused before it runs."""
    session.run(shift_by, *share_all(session, inputs, plan)[:1], static={"amount": session.rank})
    return ProgramResult()


def sorted_low_bits_of_another_file(party: Any, keys: Any, *, n_bits: int) -> Any:
    """The same computation as the kernel's own protocol, but its source is this file."""
    return party.sorted_low_bits(keys, n_bits=n_bits)


def other_protocols_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """One party has another source of a protocol written by hand: must be refused."""
    kernel = SORTED_LOW_BITS
    if session.rank == 1:
        kernel = replace(kernel, replicated=sorted_low_bits_of_another_file)
    keys = share_all(session, inputs, plan)[0]
    session.run_kernel(kernel, keys, static={"n_bits": 31})
    return ProgramResult()
