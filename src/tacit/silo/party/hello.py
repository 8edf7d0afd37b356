"""What parties tell each other when they meet, and why one of them cannot take part.

A hello holds names, versions, the terms and public facts. A party that cannot take part says so in
its hello, with a reason that gives nothing of its data away.
"""

from __future__ import annotations

from tacit.errors import TacitError
from tacit.silo.party.folder import PartyFolder
from tacit.silo.party.links.frames import Header
from tacit.silo.party.links.mesh import RunFailure, printable
from tacit.silo.plan import Facts, facts_from_dict, first_difference, running_versions


class Refusal(TacitError):
    """Why this party cannot take part: in full at home, `public` for the others."""

    def __init__(self, sentence: str, *, public: str) -> None:
        super().__init__(sentence)
        self.public = public


def hello_of(folder: PartyFolder, facts: Facts | Refusal, *, dry: bool = False) -> Header:
    """This party's hello; a `dry` one belongs to a check and starts no run."""
    hello: Header = {
        "t": "hello",
        "name": folder.name,
        "versions": running_versions(),
        "terms": folder.terms.to_dict(),
    }
    if dry:
        hello["dry"] = True
    if isinstance(facts, Refusal):
        hello["refused"] = facts.public
    else:
        hello["facts"] = facts.to_dict()
    return hello


def cannot_take_part(name: str, public: str) -> RunFailure:
    """The failure of a run whose party `name` refused."""
    return RunFailure(name, f"party '{name}' cannot take part: {public}.")


def facts_in(hello: Header, folder: PartyFolder, *, rank: int) -> Facts:
    """What the party `rank` announces; raises if it refused, or has other versions or terms."""
    name = folder.terms.parties[rank]
    if "refused" in hello:
        raise cannot_take_part(name, printable(hello["refused"]).rstrip("."))
    for what, mine in (("version", running_versions()), ("plan", folder.terms.to_dict())):
        theirs = hello.get("versions" if what == "version" else "terms", {})
        difference = first_difference(mine, theirs)
        if difference is not None:
            raise RunFailure(
                name,
                f"party '{name}' has a different {what} from '{folder.name}': "
                f"{difference}; agree on one and start again.",
            )
    return facts_from_dict(hello.get("facts", {}))
