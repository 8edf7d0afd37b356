"""One node's part in a round: compute, randomize, seal, debit its own ledger, and only then send.

The order makes a crash harmless. The sealed report is on the node's own disk before the ledger is
debited, and the ledger is debited before the report leaves. A node that is asked again for the
same round sends the same bytes again: one report, one debit, no further privacy cost, however
often the network or a service fails. What it spends is bounded by its own plan and its own
ledger, whatever the server asks.

NumPy, `cryptography` and `httpx` only: Flower starts a fresh process for every task.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import httpx
import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import LedgerError, TacitError, reason_of
from tacit.fleet.deployment.batches.signatures import digest_of, public_half, sign
from tacit.fleet.deployment.config import NodeConfig, RunDescription, read_run
from tacit.fleet.deployment.members import statements
from tacit.fleet.deployment.person_ledger import PersonLedger
from tacit.fleet.deployment.seal import Sealer, sealed_size
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.protocol import Parts
from tacit.guarantee import DpGuarantee
from tacit.ledger.known_series import marks_of, person_of
from tacit.ledger.persons import data_key, ledger_folder
from tacit.system.certificates import also_trust, trust_only
from tacit.system.files import write_once
from tacit.system.locks import locked

NO_REPORT = "this node made no report; its own log says why"
REVOKED = "the shuffler does not know this node; no report is made until it does"
_STRANGER = "not-registered"
_LOG = logging.getLogger("tacit.fleet")
_TASK_SECONDS = 300.0  # for one report at most
_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """All that a node tells the server: whether its report was taken, never what it held."""

    accepted: bool
    reason: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOffer:
    """What the shuffler says: the open round, which process says it, and whether all is over."""

    round_number: int | None
    instance: str
    finished: bool
    next_certificate: str | None = None  # its fingerprint, while the shuffler renews its own


class ShufflerClient:
    """The node's connection to the shuffler: its certificate and no other, and signed reports.

    Whoever else runs a part of the fleet, the analyser above all, must not get a report from here.
    """

    def __init__(self, config: NodeConfig, fleet: RunDescription) -> None:
        self._run = fleet.run
        self._name = config.name
        self._trusted = config.shuffler_certificate
        self._key = read_key(config.signing_key)
        self._analyser_bytes = sealed_size(Learner(fleet.plan).message_bytes)
        self._http = httpx.Client(
            base_url=config.shuffler_url,
            verify=trust_only(config.shuffler_certificate),
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
        )

    def open_round(self) -> int | None:
        """The round that the shuffler collects now, or None."""
        return self.offer().round_number

    def offer(self) -> RoundOffer:
        """Where the run stands, as the shuffler knows it."""
        response = self._http.get("/v1/status").raise_for_status()
        try:
            answer = response.json()
            return RoundOffer(
                round_number=None if answer["round"] is None else int(answer["round"]),
                instance=str(answer["instance"]),
                finished=bool(answer["finished"]),
                next_certificate=answer.get("next_certificate"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise httpx.DecodingError(
                "the shuffler's status cannot be read", request=response.request
            ) from error

    def trust_next(self, offer: RoundOffer) -> bool:
        """Trust the certificate that the shuffler announces too; whether it is new.

        It comes over a connection that the present one has authenticated.
        """
        if offer.next_certificate is None:
            return False
        content = self._http.get("/v1/next-certificate").raise_for_status().content
        return bool(content) and also_trust(self._trusted, content)

    def model(self, round_number: int) -> bytes | None:
        """The model of the open round, or None if it is that of another round by now."""
        response = self._http.get("/v1/model").raise_for_status()
        if response.headers.get("x-tacit-round") != str(round_number):
            return None
        return response.content

    def send(self, body: bytes, *, round_number: int) -> Acknowledgement:
        """Hand over one node's sealed report; what is there already counts as handed over."""
        signature = sign(
            self._key,
            run=self._run,
            round_number=round_number,
            node=self._name,
            analyser=digest_of(body[: self._analyser_bytes]),
            helper=digest_of(body[self._analyser_bytes :]),
        )
        response = self._http.post(
            f"/v1/reports/{self._run}/{round_number}",
            content=body,
            headers={"x-tacit-node": self._name, "x-tacit-signature": signature.hex()},
        )
        if response.status_code == httpx.codes.OK:
            return Acknowledgement(accepted=True)
        answer = response.json()
        taken = answer.get("code") == "replayed"
        reason, code = str(answer.get("refused", "refused")), str(answer.get("code", ""))
        return Acknowledgement(accepted=taken, reason=reason, code=code)

    def knows_me(self) -> bool:
        """Whether the shuffler knows this node and its key; asked without a report."""
        said = statements.signed(
            self._key, "member", part="shuffler", run=self._run, node=self._name
        )
        body = {"node": self._name, "signature": said}
        return self._http.post("/v1/member", json=body).status_code == httpx.codes.OK

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class Outbox:
    """The node's sealed reports and its ledger: what it has committed to, on its own disk."""

    def __init__(self, config: NodeConfig, fleet: RunDescription, learner: Learner) -> None:
        learner.check_stated(fleet.node_costs)
        config.state.mkdir(parents=True, exist_ok=True)
        self._folder = config.state / "outbox"
        self._learner = learner
        self._cost = report_cost(learner, fleet)
        self._ledger = person_ledger(config, fleet, learner)
        # A blind shuffler's analyser must not learn the sender, so nothing of it is bound in.
        self._sender = public_half(read_key(config.signing_key)) if learner.helper_bytes else b""
        self._sealer = Sealer(fleet.public_key, run=fleet.run, report_bytes=learner.message_bytes)
        self._helper_sealer = Sealer(
            fleet.helper_key,
            run=fleet.run,
            report_bytes=learner.helper_bytes or 1,
            reader="helper",
        )

    def commit(self, round_number: int, make_report: Callable[[], Parts]) -> bytes:
        """The round's sealed report, made at most once and debited exactly once.

        One task at a time: Flower starts each as a process of its own, and a server may ask twice.
        """
        path = self._path(round_number)
        with self._alone():
            if not path.exists():
                self._make(round_number, make_report)
            if not self._ledger.debited(round_number):
                self._ledger.debit(round_number, self._cost)
            self._delete_before(round_number)
            return path.read_bytes()

    def spent(self) -> float:
        """Epsilon debited for this run."""
        return self._ledger.spent_in_run()

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(self._folder / "lock", timeout_seconds=_TASK_SECONDS))
            except TimeoutError as error:
                raise LedgerError(
                    f"another task of this node has been at work for {_TASK_SECONDS:g} s; nothing "
                    "was sent, wait for it or restart the node."
                ) from error
            for orphan in self._folder.glob(".round-*"):
                orphan.unlink(missing_ok=True)  # of a task that died while it wrote
            yield

    def _make(self, round_number: int, make_report: Callable[[], Parts]) -> None:
        if self._ledger.debited(round_number):
            raise LedgerError(
                f"round {round_number} was debited and its report deleted; it is not made "
                "twice, wait for the next round."
            )
        sealed = self._sealed(make_report(), round_number)
        # Where the drive knows no locks another task may have been first; then its report counts.
        with contextlib.suppress(FileExistsError):
            write_once(self._path(round_number), sealed, mode=0o600)

    def _sealed(self, parts: Parts, round_number: int) -> bytes:
        """Each part sealed to its reader, the analyser's first."""
        sender = self._sender
        sealed = self._sealer.seal(parts.analyser, round_number=round_number, sender=sender)
        if parts.helper:
            own = self._helper_sealer.seal(parts.helper, round_number=round_number, sender=sender)
            return sealed + own
        return sealed

    def _path(self, round_number: int) -> Path:
        return self._folder / f"round-{round_number:06d}.sealed"

    def _delete_before(self, round_number: int) -> None:
        for path in self._folder.glob("round-*.sealed"):
            if path < self._path(round_number):
                path.unlink(missing_ok=True)


def report_cost(learner: Learner, fleet: RunDescription) -> Callable[[int], DpGuarantee]:
    """What the run's k-th report costs; from the plan file, where accounting needs SciPy."""
    stated = fleet.node_costs

    def cost(report: int) -> DpGuarantee:
        if report <= len(stated):
            epsilon, delta = stated[report - 1]
            return learner.stated_cost(epsilon=epsilon, delta=delta)
        return learner.node_cost(report)

    return cost


def check_person(config: NodeConfig, fleet: RunDescription) -> None:
    """Whoever has spent the budget in earlier runs hears it now, not in a log after the round."""
    learner = Learner(fleet.plan)
    learner.check_stated(fleet.node_costs)
    with contextlib.closing(person_ledger(config, fleet, learner)) as ledger:
        ledger.check_room(report_cost(learner, fleet))


def person_ledger(config: NodeConfig, fleet: RunDescription, learner: Learner) -> PersonLedger:
    """The ledger of whom this node protects: the person it names, or the series it holds."""
    folder, X = ledger_folder(config.ledgers), load_series(config.data)[0]
    series = marks_of(X)
    return PersonLedger(
        folder,
        person=person_of(folder, series, name=config.person, otherwise=data_key(X)),
        run=fleet.run,
        budget=learner.node_budget(),
        series=series,
    )


def take_part(config: NodeConfig, *, run: str, round_number: int, model: bytes) -> Acknowledgement:
    """One node's part in one round; what stands in the way is acknowledged, not raised.

    Not covered by the privacy budget, so kept out of what is acknowledged: errors that were found
    while looking at the node's data. They are logged on the node and reported in fixed words.
    """
    fleet = read_run(config.plan)
    if run != fleet.run:
        return Acknowledgement(accepted=False, reason=f"this node serves run {fleet.run}.")
    if not 1 <= round_number <= fleet.plan.n_rounds:
        return Acknowledgement(accepted=False, reason=f"the plan has no round {round_number}.")
    shuffler = ShufflerClient(config, fleet)
    try:
        return _report(config, fleet, shuffler, round_number=round_number, model=model)
    except httpx.HTTPError as error:
        return Acknowledgement(
            accepted=False, reason=f"the shuffler does not answer: {type(error).__name__}"
        )
    except (TacitError, OSError) as error:  # OSError: a full disk, which may have room again
        _LOG.error("no report for round %d: %s", round_number, error)
        return Acknowledgement(accepted=False, reason=NO_REPORT)
    finally:
        shuffler.close()


def _report(
    config: NodeConfig,
    fleet: RunDescription,
    shuffler: ShufflerClient,
    *,
    round_number: int,
    model: bytes,
) -> Acknowledgement:
    # Ask first: a question that comes late must not spend anything.
    if shuffler.open_round() != round_number:
        return Acknowledgement(accepted=False, reason=f"round {round_number} is not open.")
    struck_off = config.state / "struck-off"
    if struck_off.exists() and not shuffler.knows_me():
        return Acknowledgement(accepted=False, reason=REVOKED, code=_STRANGER)
    learner = Learner(fleet.plan)
    outbox = Outbox(config, fleet, learner)
    try:
        body = outbox.commit(round_number, lambda: learner.report(model, *load_series(config.data)))
    finally:
        outbox.close()
    answer = shuffler.send(body, round_number=round_number)
    # A node that is revoked pays for no further report, until it is known again.
    if answer.code == _STRANGER:
        struck_off.touch()
    else:
        struck_off.unlink(missing_ok=True)
    return answer


def read_key(path: Path) -> bytes:
    """A key file's content, or one sentence about why not."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TacitError(f"cannot read the key {path}: {error.strerror}.") from error


def load_series(path: Path) -> tuple[Floats, NDArray[np.str_]]:
    """The node's own series (n, channels, length) and labels from an npz with X and y."""
    try:
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            X, y = np.asarray(arrays["X"], dtype=np.float64), arrays["y"].astype(np.str_)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise TacitError(
            f"cannot read series from {path} ({reason_of(error)}); "
            "it must be an npz file with X and y."
        ) from error
    if X.ndim == 2:
        X = X[:, None, :]
    if X.ndim != 3 or len(X) != len(y) or not len(X) or not np.all(np.isfinite(X)):
        raise TacitError(
            f"{path} must hold finite series X of shape (n, channels, length) and n labels y, "
            f"got {X.shape} and {y.shape}."
        )
    return X, y
