"""The shuffler's rule: who may report, once, in which round; and that order says nothing."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tacit.errors import BundleError, TacitError
from tacit.fleet.deployment import shuffler_state
from tacit.fleet.deployment.batches.pools import PermutedPool, shuffle_messages
from tacit.fleet.deployment.batches.registry import Registry, write_registry
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key, sign
from tacit.fleet.deployment.seal import Opener, Sealer, new_key, sealed_size
from tacit.fleet.deployment.shuffler import Batch, Refused, Shuffler
from tacit.noise import SYSTEM_NOISE
from tacit.system.files import write_secret

FALSE_ALARM = 1e-6
RUN = "run-1"
SIZE = 48
NODES = ("a", "b", "c", "d")
KEYS = {node: new_signing_key() for node in (*NODES, "e")}  # "e" is nowhere registered
folders: Iterator[Path]  # every shuffler its own, unless a test says otherwise


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path) -> None:
    global folders
    folders = (tmp_path / str(i) for i in itertools.count())


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def registry(*nodes: str) -> Registry:
    return Registry({node: KEYS[node][1] for node in nodes})


def make(clock: Callable[[], float] = lambda: 0.0, **changes: object) -> Shuffler:
    settings: dict[str, object] = {
        "run": RUN,
        "registry": registry(*NODES),
        "pool": PermutedPool(sealed_bytes=SIZE),
        "n_min": 2,
        "round_seconds": 10.0,
        "clock": clock,
        "folder": next(folders),
    }
    shuffler = Shuffler(**(settings | changes))  # type: ignore[arg-type]
    if shuffler.waiting() is None:
        shuffler.open_round(shuffler.forwarded + 1)
    return shuffler


def send(
    shuffler: Shuffler,
    node: str,
    body: bytes | None = None,
    *,
    round_number: int = 1,
    run: str = RUN,
) -> bytes:
    sealed = os.urandom(SIZE) if body is None else body
    signature = signed(node, sealed, run=run, round_number=round_number)
    shuffler.accept(node=node, signature=signature, run=run, round_number=round_number, body=sealed)
    return sealed


def signed(node: str, body: bytes, *, run: str = RUN, round_number: int = 1) -> bytes:
    return sign(
        KEYS[node][0],
        run=run,
        round_number=round_number,
        node=node,
        analyser=digest_of(body),
        helper=digest_of(b""),
    )


def refusal(shuffler: Shuffler, *args: object, **kwargs: object) -> Refused:
    before = shuffler.received
    with pytest.raises(Refused) as caught:
        send(shuffler, *args, **kwargs)  # type: ignore[arg-type]
    assert shuffler.received == before, "a refused report leaves no trace"
    assert str(caught.value).count(". ") == 0, "one sentence"
    return caught.value


def split(batch: Batch | None, size: int = SIZE) -> list[bytes]:
    assert batch is not None
    return [batch.messages[i : i + size] for i in range(0, len(batch.messages), size)]


def test_a_full_round_comes_out_whole() -> None:
    shuffler = make()
    sent = [send(shuffler, node) for node in NODES]
    assert shuffler.due()
    batch = shuffler.release()
    assert sorted(split(batch)) == sorted(sent)
    assert batch is not None
    assert (batch.run, batch.round_number, batch.n_nodes) == (RUN, 1, 4)


def test_a_replayed_report_is_refused() -> None:
    shuffler = make()
    body = send(shuffler, "a")
    assert refusal(shuffler, "a", body).code == "replayed"
    assert refusal(shuffler, "a").code == "replayed", "a second report of a node, fresh or not"


@pytest.mark.parametrize("round_number", [0, 2, -1, 10**9])
def test_a_report_of_another_round_is_refused(round_number: int) -> None:
    assert refusal(make(), "a", round_number=round_number).code == "wrong-round"


def test_a_report_of_another_run_is_refused() -> None:
    assert refusal(make(), "a", run="run-2").code == "wrong-run"


def test_an_unregistered_node_is_refused_even_with_a_key() -> None:
    assert refusal(make(), "e").code == "not-registered"
    assert refusal(make(registry=registry("b", "c")), "a").code == "not-registered", "revoked"


def test_a_signature_of_another_node_report_or_round_is_refused() -> None:
    shuffler = make()
    body = os.urandom(SIZE)
    foreign = (
        signed("b", body),
        signed("e", body),
        signed("a", os.urandom(SIZE)),
        signed("a", body, round_number=2),
        signed("a", body, run="run-2"),
        b"",
        bytes(64),
    )
    for signature in foreign:
        with pytest.raises(Refused, match="registered"):
            shuffler.accept(node="a", signature=signature, run=RUN, round_number=1, body=body)
    assert shuffler.received == 0
    shuffler.accept(node="a", signature=signed("a", body), run=RUN, round_number=1, body=body)


def test_the_registry_is_followed_while_the_shuffler_runs(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    write_registry(path, {node: KEYS[node][1] for node in ("a", "b")})
    shuffler = make(registry=Registry.read(path))
    assert refusal(shuffler, "e").code == "not-registered"
    write_registry(path, {node: KEYS[node][1] for node in ("b", "e")})
    send(shuffler, "e")
    assert refusal(shuffler, "a").code == "not-registered", "revoked"


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1, 10 * SIZE])
def test_a_report_of_another_size_is_refused(size: int) -> None:
    assert refusal(make(), "a", bytes(size)).code == "wrong-size"


def test_nothing_is_taken_between_rounds() -> None:
    shuffler = make()
    shuffler.open_round(None)
    assert refusal(shuffler, "a").code == "closed"
    with pytest.raises(TacitError, match="no round is open"):
        shuffler.release()


def test_the_round_waits_for_its_deadline_when_a_node_is_silent() -> None:
    clock = Clock()
    shuffler = make(clock)
    clock.now = 100.0
    assert not shuffler.due(), "the time runs from the first report"
    for node in NODES[:3]:
        send(shuffler, node)
    clock.now = 109.9
    assert not shuffler.due()
    clock.now = 110.0
    assert shuffler.due()
    batch = shuffler.release()
    assert batch is not None
    assert batch.n_nodes == 3


def test_too_few_reports_wait_for_more_however_long_it_takes() -> None:
    """A node that was answered "accepted" has reported: its report is never dropped."""
    clock = Clock()
    shuffler = make(clock)
    first = send(shuffler, "a")
    clock.now = 11.0
    assert not shuffler.due()
    assert shuffler.overdue(), "and it is said"
    with pytest.raises(TacitError, match="1 reports have come and 2 are needed; they wait"):
        shuffler.release()
    clock.now = 1e6
    second = send(shuffler, "b")
    assert shuffler.due()
    assert not shuffler.overdue()
    assert sorted(split(shuffler.release())) == sorted([first, second])


def test_after_a_batch_the_shuffler_holds_nothing() -> None:
    shuffler = make()
    for node in NODES:
        send(shuffler, node)
    first = shuffler.release()
    assert shuffler.received == 0
    assert refusal(shuffler, "a").code == "closed"
    shuffler.acknowledge()
    shuffler.open_round(2)
    for node in NODES:
        send(shuffler, node, round_number=2)
    second = shuffler.release()
    assert first is not None
    assert second is not None
    assert not set(split(first)) & set(split(second))
    assert first.batch_id != second.batch_id


@pytest.mark.parametrize("n_min", [1, 0, -3])
def test_a_batch_of_one_is_never_allowed(n_min: int) -> None:
    with pytest.raises(TacitError, match="n_min"):
        make(n_min=n_min)


def test_the_shuffler_cannot_read_what_it_forwards() -> None:
    """By construction: it gets bytes, a name and a signature, and none of them opens a report."""
    private, public = new_key()
    sealer = Sealer(public, run=RUN, report_bytes=16)
    shuffler = make(pool=PermutedPool(sealed_bytes=sealed_size(16)))
    reports = {node: os.urandom(16) for node in NODES}
    for node, report in reports.items():
        send(shuffler, node, sealer.seal(report, round_number=1))
    messages = split(shuffler.release(), sealed_size(16))
    assert not any(report in message for report in reports.values() for message in messages)
    for key in (KEYS[node][1] for node in NODES):
        opened = [Opener(key, run=RUN).open(m, round_number=1) for m in messages]
        assert opened == [None] * 4
    opener = Opener(private, run=RUN)
    opened_by_analyser = {opener.open(m, round_number=1) for m in messages}
    assert opened_by_analyser == set(reports.values())


# Once and never again: the difference of two batches of a round is the node that one of them lacks.


def forwarded_round(folder: Path) -> tuple[Shuffler, Batch]:
    shuffler = make(folder=folder)
    for node in NODES:
        send(shuffler, node)
    batch = shuffler.release()
    assert batch is not None
    return shuffler, batch


def not_opened(shuffler: Shuffler, round_number: int) -> str:
    with pytest.raises(Refused) as caught:
        shuffler.open_round(round_number)
    assert shuffler.round_number is None
    return caught.value.code


def test_a_forwarded_round_is_not_opened_again(tmp_path: Path) -> None:
    shuffler, _ = forwarded_round(tmp_path)
    assert not_opened(shuffler, 1) == "unacknowledged"
    assert not_opened(shuffler, 2) == "unacknowledged"
    shuffler.acknowledge()
    for asked in (1, 0, -5):
        assert not_opened(shuffler, asked) == "forwarded"
    again = make(folder=tmp_path)
    assert (again.forwarded, again.round_number) == (1, 2), "and a restart does not forget it"
    again.open_round(None)
    assert not_opened(again, 1) == "forwarded"
    assert not_opened(again, 3) == "unknown-round", "a record that was lost is noticed"


def test_a_batch_survives_a_restart_byte_for_byte_until_it_is_acknowledged(tmp_path: Path) -> None:
    _, batch = forwarded_round(tmp_path)
    again = make(folder=tmp_path)
    assert again.waiting() == batch
    assert again.waiting() == batch, "as often as it has to be sent"
    assert not_opened(again, 1) == "unacknowledged"
    again.acknowledge()
    assert again.waiting() is None
    assert make(folder=tmp_path).waiting() is None


def test_what_is_kept_is_private_and_gone_once_it_is_acknowledged(tmp_path: Path) -> None:
    shuffler, batch = forwarded_round(tmp_path)
    kept = [path for path in tmp_path.iterdir() if path.is_file()]
    assert {oct(path.stat().st_mode & 0o777) for path in kept} == {"0o600"}
    assert any(batch.messages in path.read_bytes() for path in kept)
    shuffler.acknowledge()
    (left,) = tmp_path.iterdir()
    assert not any(message in left.read_bytes() for message in split(batch))


class PowerCut(BaseException):
    pass


@pytest.mark.parametrize("written", [0, 1])
def test_a_crash_before_the_record_leaves_the_round_open_and_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """`written` files reach the disk: with one, the messages are there and the record is not."""
    shuffler = make(folder=tmp_path)
    sent = [send(shuffler, node) for node in NODES]
    left = iter(range(written))
    real = write_secret

    def write(path: Path, content: bytes) -> None:
        if next(left, None) is None:
            raise PowerCut
        real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(shuffler_state, "write_secret", write)
        with pytest.raises(PowerCut):
            shuffler.release()
    (tmp_path / ".batch.sealed.0123abcd").write_bytes(b"half written")
    again = make(folder=tmp_path)
    assert (again.forwarded, again.round_number, again.waiting()) == (0, 1, None)
    assert not list(tmp_path.iterdir()), "nothing was forwarded, so nothing is kept"
    for node, body in zip(NODES, sent, strict=True):
        send(again, node, body)
    assert sorted(split(again.release())) == sorted(sent)


def test_a_full_disk_keeps_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffler = make()
    sent = [send(shuffler, node) for node in NODES]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shuffler_state, "write_secret", full)
        with pytest.raises(OSError, match="space"):
            shuffler.release()
    assert shuffler.due()
    assert sorted(split(shuffler.release())) == sorted(sent)


def test_a_record_that_is_broken_or_of_another_run_is_not_taken_for_a_new_one(
    tmp_path: Path,
) -> None:
    forwarded_round(tmp_path)
    with pytest.raises(BundleError, match="belongs to run run-1, not to run-2"):
        make(folder=tmp_path, run="run-2")
    messages = tmp_path / "batch.sealed"
    whole = messages.read_bytes()
    messages.write_bytes(whole[:-1])
    with pytest.raises(BundleError, match="191 bytes and not the 192"):
        make(folder=tmp_path)
    messages.unlink()
    with pytest.raises(BundleError, match="0 bytes"):
        make(folder=tmp_path)
    for broken in (b"", b"{}", b'{"run": "run-1", "forwarded": "x", "waiting": null}'):
        (tmp_path / "forwarded.json").write_bytes(broken)
        with pytest.raises(BundleError, match="whole record"):
            make(folder=tmp_path)


# Linking: does the place of a message in the batch say who sent it, or when it came?

TRIALS = 24_000


def places(
    order: Callable[[list[bytes]], list[bytes]], n: int, trials: int
) -> list[tuple[int, ...]]:
    """For each trial, where the messages of senders 0..n-1 (in order of arrival) ended up."""
    messages = [bytes([sender]) * 8 for sender in range(n)]
    found = []
    for _ in range(trials):
        out = order(messages)
        found.append(tuple(out.index(message) for message in messages))
    return found


def secure(messages: list[bytes]) -> list[bytes]:
    out = shuffle_messages(b"".join(messages), 8, source=SYSTEM_NOISE)
    return [out[i : i + 8] for i in range(0, len(out), 8)]


def lazy(messages: list[bytes]) -> list[bytes]:
    """A shuffler that leaves the order of arrival alone once in twenty batches."""
    return messages if os.urandom(1)[0] < 13 else secure(messages)


def mutual_information_is_zero(found: list[tuple[int, ...]], n: int) -> bool:
    """G-test that one sender's place is independent of who it is, per pair (sender, place).

    2 * trials * (empirical mutual information, in nats) is chi-square with (n-1)^2 degrees of
    freedom under a uniform permutation up to the factor (n-1)/n of a table whose rows and columns
    are both fixed; cries wolf with probability FALSE_ALARM.
    """
    table = np.zeros((n, n))
    for places_of_all in found:
        for sender, place in enumerate(places_of_all):
            table[sender, place] += 1
    joint = table / table.sum()
    information = float(np.sum(joint * np.log(joint * n * n)))
    statistic = 2.0 * table.sum() * information * (n - 1) / n
    return bool(stats.chi2.sf(statistic, (n - 1) ** 2) > FALSE_ALARM)


def all_orders_alike(found: list[tuple[int, ...]], n: int) -> bool:
    counts = Counter(found)
    observed = [counts[order] for order in itertools.permutations(range(n))]
    return bool(stats.chisquare(observed).pvalue > FALSE_ALARM)


def test_the_place_says_nothing_about_the_sender() -> None:
    assert mutual_information_is_zero(places(secure, 8, TRIALS // 4), 8)


@pytest.mark.seconds
def test_every_order_of_four_is_equally_likely() -> None:
    found = places(secure, 4, TRIALS)
    assert len(set(found)) == math.factorial(4)
    assert all_orders_alike(found, 4)


@pytest.mark.seconds
def test_the_checks_notice_a_shuffler_that_is_lazy_once_in_twenty() -> None:
    assert not mutual_information_is_zero(places(lazy, 8, TRIALS // 4), 8)
    assert not all_orders_alike(places(lazy, 4, TRIALS), 4)
