"""What every party keeps of a run: a receipt with the plan, the openings and the traffic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import BundleError
from tacit.guarantee import MpcGuarantee
from tacit.silo.party.data_budget import opened_privacy
from tacit.silo.plan import Plan, plan_from_dict
from tacit.silo.secure.openings import Opening, opening_from_dict, summarise
from tacit.system.files import write_secret

RECEIPT = "receipt.json"
_CHANNELS = (
    "private channels: TLS 1.3 between the parties, for their engines too, each end pinned to the "
    "certificate of exactly the party meant"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one party can show about a finished run: the plan, what was opened, the traffic."""

    party: str
    plan: Plan
    info: Mapping[str, Any]
    opened: tuple[Opening, ...]
    bytes_sent: int
    rounds: int
    seconds: float
    traffic: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def guarantee(self) -> MpcGuarantee:
        """What the run protected, and everything that it opened."""
        return guarantee_of(self.plan, self.opened)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `receipt.json`."""
        return {
            "party": self.party,
            "fingerprint": self.plan.fingerprint,
            "plan": self.plan.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "opened": [o.to_dict() for o in self.opened],
            "info": dict(self.info),
            "bytes_sent": self.bytes_sent,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "traffic": [dict(t) for t in self.traffic],
        }


def guarantee_of(plan: Plan, opened: tuple[Opening, ...]) -> MpcGuarantee:
    """The guarantee of a run under a plan, with the exact list of what was opened."""
    computing = ", ".join(plan.parties[: plan.n_computing])
    return MpcGuarantee(
        n_parties=plan.n_parties,
        max_corrupt=1,
        adversary="passive",
        protocol=plan.protocol,
        opened=summarise(opened, plan.parties),
        assumptions=(
            f"the computing parties ({computing}) follow the protocol and do not collude",
            _CHANNELS,
            "the owners' machines and the package are genuine",
        ),
        not_covered=(
            "counts, lengths, classes present at each party, plan, message sizes and timing",
            "what the opened values themselves say about the series",
            "parties that deviate from the protocol",
        ),
        also=opened_privacy(plan.params),
    )


def receipt_from_dict(plain: Mapping[str, Any]) -> Receipt:
    """Read back what `Receipt.to_dict` wrote."""
    try:
        return Receipt(
            party=str(plain["party"]),
            plan=plan_from_dict(plain["plan"]),
            info=dict(plain["info"]),
            opened=tuple(opening_from_dict(o) for o in plain["opened"]),
            bytes_sent=int(plain["bytes_sent"]),
            rounds=int(plain["rounds"]),
            seconds=float(plain["seconds"]),
            traffic=tuple(plain.get("traffic", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"not a receipt: {error!r}.") from error


def write_receipt(folder: Path, receipt: Receipt) -> None:
    """Write a party's receipt, whole or not at all."""
    text = json.dumps(receipt.to_dict(), indent=1, allow_nan=False)
    write_secret(folder / RECEIPT, text.encode())


def read_receipt(folder: Path) -> Receipt:
    """Read a party's receipt."""
    try:
        plain = json.loads((folder / RECEIPT).read_text())
    except FileNotFoundError as error:
        earlier = folder / f"{RECEIPT}.previous"
        hint = f", only that of an earlier run, {earlier.name}" if earlier.exists() else ""
        raise BundleError(
            f"there is no {RECEIPT} in {folder}{hint}; give the folder where a party's run ended."
        ) from error
    except OSError as error:
        raise BundleError(f"cannot read {folder / RECEIPT}: {error.strerror}.") from error
    except ValueError as error:
        raise BundleError(f"cannot read {folder / RECEIPT}: {error}.") from error
    return receipt_from_dict(plain)
