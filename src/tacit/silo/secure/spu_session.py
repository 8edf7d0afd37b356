"""The secure engine: a `Session` over SPU, for one owner in its own process.

Trust: ABY3 tolerates one passively corrupted computing party of three, CHEETAH one of two; nobody
deals randomness. SPU's other protocols are not offered: SEMI2K takes its triples from rank 0, who
could then decode everything. Owners beyond the computing ones hold no runtime: they make shares of
their own data and send one to each computing party, over mutual TLS.

Everything that leaves the shares leaves through `SpuSession.reveal`, which records it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.plan import Plan
from tacit.silo.secure.compiler import Compiled, Compiler
from tacit.silo.secure.kernels import Kernel
from tacit.silo.secure.metering import EngineLog, Mailbox, StepMeter, StepTraffic, step_traffic
from tacit.silo.secure.openings import Opening
from tacit.silo.secure.replicated import Pair, Replicated
from tacit.silo.secure.session import JaxFunction, Shared, Static, check_share
from tacit.silo.secure.shares import check_copies, frame_of, share_from, share_of, words_of

# How far the program is: steps done, of how many, in words, and further numbers by name.
Report = Callable[[int, int, str, Mapping[str, float | None]], None]


def runtime_config(plan: Plan) -> Any:
    """SPU's settings for a plan; the ring is 64 bits wide."""
    from spu import libspu

    kinds = {"ABY3": libspu.ProtocolKind.ABY3, "CHEETAH": libspu.ProtocolKind.CHEETAH}
    config = libspu.RuntimeConfig(
        protocol=kinds[plan.protocol],
        field=libspu.FieldType.FM64,
        fxp_fraction_bits=plan.fraction_bits,
    )
    # The only source of byte and message counts; it prints one line per run into our log file.
    config.enable_pphlo_profile = True
    return config


class SpuSession:
    """`Session` over SPU for the owner `rank`; the computing ones hold a `link`.

    Parties: `plan.parties`, of which the first `plan.n_computing` compute.
    Corruption: one of the computing parties, passive; no dealer.
    Opens: only what `reveal` and `announce` record in `opened`.
    """

    def __init__(
        self,
        plan: Plan,
        rank: int,
        *,
        mailbox: Mailbox,
        link: Any | None,
        log: Path,
        compiler: Compiler,
        report: Report = lambda _done, _total, _message, _numbers: None,
    ) -> None:
        import spu

        config = runtime_config(plan)
        self.rank = rank
        self.n_parties = plan.n_parties
        self.opened: list[Opening] = []
        self.traffic: list[StepTraffic] = []
        self._computing = range(plan.n_computing)
        self._mailbox = mailbox
        self._io = spu.Io(plan.n_computing, config)
        self._runtime = spu.Runtime(link, config) if link is not None else None
        self._replicates = plan.protocol == "ABY3"
        self._link = link
        self._party: Replicated | None = None
        self._log = EngineLog(log)
        self._compiler = compiler
        self._agreed_code: set[str] = set()
        self._report = report
        self._calls = 0
        self._other_rounds = 0  # of the engine and of mail
        self.compile_seconds = 0.0
        if (rank in self._computing) != (link is not None):
            raise TacitError(f"rank {rank} must hold an engine link if it computes, and only then.")

    @property
    def bytes_sent(self) -> int:
        """Bytes sent so far: engine, shares and openings, without the overhead of TLS."""
        return sum(t.bytes_sent for t in self.traffic)

    @property
    def rounds(self) -> int:
        """See `Session.rounds`."""
        if self._party is None:
            return self._other_rounds
        return self._other_rounds + self._party.rounds

    def share(
        self,
        name: str,
        value: NDArray[Any] | None,
        *,
        owner: int,
        shape: tuple[int, ...],
        dtype: str = "int64",
        limit: float | None = None,
    ) -> Shared:
        """See `Session.share`; each computing party receives one share and nothing else."""
        number = self._next()
        mine = owner == self.rank
        array = check_share(name, value, mine=mine, shape=shape, dtype=dtype, limit=limit)
        handle = Shared(f"{name}#{number}", tuple(int(n) for n in shape), dtype)
        with self._meter(f"share {name}") as meter:
            if array is not None:
                self._send_shares(handle, array, meter)
            elif self._runtime is not None:
                frame = meter.receive(owner, kind="share", number=number, name=handle.name)
                like = self._shares(np.zeros(handle.shape, dtype=dtype))[self.rank]
                self._runtime.set_var(handle.name, share_from(*frame, like=like, sender=owner))
        return handle

    def _meter(self, step: str) -> StepMeter:
        self._other_rounds += 1
        return StepMeter(self._mailbox, self.traffic, step)

    def _shares(self, array: NDArray[Any]) -> Any:
        from spu import libspu

        return self._io.make_shares(array, libspu.Visibility.VIS_SECRET)

    def _send_shares(self, handle: Shared, array: NDArray[Any], meter: StepMeter) -> None:
        shares = self._shares(array)
        for rank in self._computing:
            if rank == self.rank and self._runtime is not None:
                self._runtime.set_var(handle.name, shares[rank])
            else:
                header, payload = frame_of(shares[rank])
                header |= {"kind": "share", "number": self._calls, "name": handle.name}
                meter.send(rank, header, payload)

    def run(self, fn: JaxFunction, *shared: Shared, static: Static | None = None) -> Any:
        """See `Session.run`; owners without a runtime only follow the shapes."""
        number = self._next()
        start = time.monotonic()
        compiled = self._compiler.get(fn, shared, dict(static or {}))
        self.compile_seconds += time.monotonic() - start
        handles = tuple(
            Shared(f"{fn.__name__}#{number}.{i}", shape, dtype)
            for i, (shape, dtype) in enumerate(compiled.outputs)
        )
        if self._runtime is not None:
            self._agree_on_code(compiled.fingerprint, fn.__name__)
            self._execute(compiled, fn.__name__, shared, handles)
        return handles if compiled.many else handles[0]

    def _execute(
        self, compiled: Compiled, name: str, inputs: Sequence[Shared], outputs: Sequence[Shared]
    ) -> None:
        from spu import libspu

        assert self._runtime is not None
        executable = libspu.Executable(
            name=name,
            input_names=[s.name for s in inputs],
            output_names=[s.name for s in outputs],
            code=compiled.code,
        )
        self._runtime.run(executable)
        spent = self._log.traffic_of(name)
        self.traffic.append(spent)
        self._other_rounds += max(spent.messages_sent, spent.messages_received)

    def run_kernel(self, kernel: Kernel, *shared: Shared, static: Static | None = None) -> Shared:
        """See `Session.run_kernel`: over replicated shares under ABY3, else compiled."""
        if not self._replicates:
            found: Shared = self.run(kernel.compiled, *shared, static=static)
            return found
        shape = kernel.output_shape(*(operand.shape for operand in shared), **dict(static or {}))
        handle = Shared(f"{kernel.name}#{self._next()}", shape, "int64")
        if self._runtime is not None:
            self._agree_on_code(kernel.fingerprint, kernel.name)
            result = self._run_replicated(kernel, shared, dict(static or {}))
            self._runtime.set_var(handle.name, share_of(result))
        return handle

    def _run_replicated(self, kernel: Kernel, shared: Sequence[Shared], static: Static) -> Pair:
        assert self._link is not None
        before = (0, 0, 0, 0)  # the exchange of keys counts as well
        if self._party is None:
            self._party = Replicated(self._link, self.rank)
        else:
            before = self._party.traffic
        result = kernel.replicated(self._party, *map(self._words, shared), **static)
        spent = [a - b for a, b in zip(self._party.traffic, before, strict=True)]
        self.traffic.append(step_traffic(kernel.name, tuple(spent)))
        return result

    def _words(self, shared: Shared) -> Pair:
        assert self._runtime is not None
        return words_of(self._runtime.get_var(shared.name), shared.shape)

    def _agree_on_code(self, fingerprint: str, name: str) -> None:
        """Before the first run of some code: the initiator's must be ours, byte for byte."""
        if fingerprint in self._agreed_code:
            return
        with self._meter(f"code {name}") as meter:
            header = {"kind": "code", "number": self._calls, "name": name}
            if self.rank == 0:
                for rank in self._computing[1:]:
                    meter.send(rank, header | {"sha256": fingerprint}, b"")
            else:
                theirs, _ = meter.receive(0, kind="code", number=self._calls, name=name)
                if theirs.get("sha256") != fingerprint:
                    raise TacitError(
                        f"the code of '{name}' at the initiator differs from this party's; "
                        "install the same version of the package everywhere."
                    )
        self._agreed_code.add(fingerprint)

    def reveal(self, shared: Shared, *, to: int = 0, what: str) -> NDArray[Any] | None:
        """See `Session.reveal`: the only function that opens a shared value.

        The computing parties send their shares of this one value to the owner `to`; a share says
        nothing beyond the value itself, because the others' shares and the value determine it.
        Under ABY3 every word comes twice, and copies that differ end the run.
        """
        number = self._next()
        self.opened.append(Opening(what=what, to=to))
        with self._meter(f"reveal {what}") as meter:
            if self._runtime is not None and self.rank != to:
                header, payload = frame_of(self._runtime.get_var(shared.name))
                header |= {"kind": "open", "number": number, "name": shared.name}
                meter.send(to, header, payload)
            if self.rank != to:
                return None
            return self._reconstruct(shared, number, meter)

    def _reconstruct(self, shared: Shared, number: int, meter: StepMeter) -> NDArray[Any]:
        mine = None if self._runtime is None else self._runtime.get_var(shared.name)
        like, shares = mine, []
        for rank in self._computing:
            if rank == self.rank and mine is not None:
                shares.append(mine)
                continue
            frame = meter.receive(rank, kind="open", number=number, name=shared.name)
            # An owner without a runtime compares the shares with each other.
            shares.append(share_from(*frame, like=like, sender=rank))
            like = shares[0]
        if self._replicates:
            own = self.rank if mine is not None else None
            check_copies(shares, n_values=math.prod(shared.shape), own=own)
        value: NDArray[Any] = np.asarray(self._io.reconstruct(shares)).reshape(shared.shape)
        return value.astype(shared.dtype, copy=False)

    def announce(self, value: Any, *, owner: int = 0, what: str) -> Any:
        """See `Session.announce`."""
        number = self._next()
        self.opened.append(Opening(what=what, to=-1))
        with self._meter(f"announce {what}") as meter:
            if self.rank != owner:
                header, _ = meter.receive(owner, kind="public", number=number, name=what)
                return header["value"]
            plain = json.loads(json.dumps(value, allow_nan=False))
            for rank in range(self.n_parties):
                if rank != owner:
                    header = {"kind": "public", "number": number, "name": what, "value": plain}
                    meter.send(rank, header, b"")
        return plain

    def free(self, *shared: Shared) -> None:
        """See `Session.free`."""
        self._next()
        for handle in shared:
            if self._runtime is not None:
                self._runtime.del_var(handle.name)

    def public_barrier(self) -> None:
        """See `Session.public_barrier`."""
        number = self._next()
        with self._meter("barrier") as meter:
            others = [r for r in range(self.n_parties) if r != self.rank]
            for rank in others:
                meter.send(rank, {"kind": "barrier", "number": number, "name": ""}, b"")
            for rank in others:
                meter.receive(rank, kind="barrier", number=number, name="")

    def progress(
        self, done: int, total: int, message: str, *, seconds_left: float | None = None
    ) -> None:
        """See `Session.progress`."""
        numbers = {"seconds_left": seconds_left, "bytes_sent": self.bytes_sent}
        self._report(done, total, message, numbers)

    def _next(self) -> int:
        self._calls += 1
        return self._calls
