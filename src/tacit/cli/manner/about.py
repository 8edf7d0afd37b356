"""What help says of every command besides its options: its guide, its JSON keys, former names.

Docs and tests read the same table, so that a new command needs its line here.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, get_type_hints

from tacit.cli.manner.walk import arguments_of, leaves

GUIDES = {
    "demo": "docs/index.md",
    "studio": "docs/guide/studio.md",
    "data": "docs/reference/data.md",
    "train softshape": "docs/guide/local.md",
    "train fedst": "docs/guide/silo.md",
    "train timefl": "docs/guide/fleet.md",
    "train hybrid": "docs/guide/hybrid.md",
    "release": "docs/guide/local.md",
    "export": "docs/guide/local.md",
    "classify": "docs/guide/local.md",
    "disclose": "docs/guide/disclosure.md",
    "serve": "docs/guide/collector.md",
    "send": "docs/guide/collector.md",
    "collector": "docs/guide/collector.md",
    "silo": "docs/guide/silo.md",
    "fleet classify": "docs/guide/fleet.md",
    "fleet export": "docs/guide/hybrid.md",
    "fleet": "docs/guide/fleet-deployment.md",
    "account": "docs/reference/accounting.md",
    "audit": "docs/guarantees/audits.md",
    "attack": "docs/guarantees/attacks.md",
    "ledger": "docs/reference/ledger.md",
    "arena": "docs/guide/arena.md",
}
_ATTACK = (
    "`succeeded`, `rate`, `chance`, `seconds`, `guarantee`, `sound`; with `--page` also `page`"
)
_RUN = "`round`, `rounds`, `finished`, `history`, `spent`, `guarantee`, `stopped`"
_SCORES = "`accuracy_interval` (`low`, `high`, `level`), `confusion` (`classes`, `counts`)"
# At least these keys stand in the JSON object; others may be added. What follows a semicolon is
# there under its condition; tests/command.py looks for the keys in whatever the tests run.
KEYS = {
    "demo": "`families` (for each: `accuracy`, `guarantee`, `seconds`), `report`",
    "studio": "`url`, `workspace`; then it goes on serving",
    "data list": "`datasets`",
    "data show": "`name`, `n_train`, `n_test`, `length`, `channels`, `n_classes`, `classes`",
    "data import": "`series`, `channels`, `length`, `classes`, `subjects`, `dropped` (reason to "
    "count), `out`",
    "train softshape": f"`accuracy`, `guarantee`, `train_seconds`, `seed`, {_SCORES}, `warnings`; "
    "in sound mode also `ceiling`; in published mode also "
    "`preset`, `changed`, `nominal_epsilon`, `leakage` (`claimed_total`, `empirical_sensitivity`, "
    "`realised_loss_median`, `reidentification`); with `--page` also `page`; with `--out` also "
    "`bundle`",
    "train fedst": f"`accuracy`, {_SCORES}, `guarantee` (with `opened`), `seconds` (`search`, "
    "`transform`, `classifier`), `bytes_sent`, `shapelets`, `features` (kind and description of "
    "each that is kept); with `--page` also `page`; with `--out` also `out`",
    "train timefl": f"`accuracy`, {_SCORES}, `guarantee`, `rounds`; with `--baselines` also "
    "`baselines` (`fedavg`, `central_dp`); in published mode also `preset`, `ended_by` (`delta`, "
    "`convergence` or `rounds`), `stopped`, `nominal_epsilon`, `nominal_delta`, "
    "`reidentification`; with `--page` also `page`; with `--out` also `out`",
    "train hybrid": "`accuracy`, `clean_accuracy`, `guarantee` (`training`, `release`, and `both` "
    f"for who trains and releases once), {_SCORES}, `ceiling`, `rounds`; with `--out` "
    "also `bundle`",
    "release": "`count`, `guarantee`, `spent` (all series of the ledger together, null without a "
    "ledger), `accounted`; of a model that a fleet trained also `training`; with `--ledger` also "
    "`spent_per_series` (of the series that spent most), `series`",
    "disclose": "`out`, `fields`, `not_stated`, `guarantees`",
    "export": "`format`, `out`, `files`, `bytes`, `release`, `model`, `guarantee`",
    "classify": "`labels`, `count`, `guarantee`; with `--prevalence` also `prevalence` "
    "(`classes`, `share`, `low`, `high`, `level`, `n`, `of`, `assumption`, `identifiable`, "
    "`warning`)",
    "serve": "`host`, `port`, `guarantee`; with `--store` also `url`, `store`, `collector`, "
    "`certificate`, `sha256`; then it goes on serving",
    "send": "`stored`, `repeated`, `device`, `to`, `key`",
    "collector codes": "`codes`, `group`, `days`",
    "collector show": "`model`, `releases`, `devices`, `groups`",
    "collector prevalence": "`classes`, `periods` (for each: `start`, `group`, and the keys of "
    "`prevalence` above), `guarantee`",
    "collector export": "`releases`, `out`",
    "collector revoke": "`device`, `revoked`, `erased`",
    "collector clock": "`now`, `last_seen`, `confirmed`, `moved`",
    "collector erase": "`erased`",
    "silo init": "`fingerprint`, `initiator`, `parties`",
    "silo plan": "`fingerprint`, `agreed`, `initiator`, `plan`",
    "silo check": "`ready`, `party`, `fingerprint`, `parties`",
    "silo party": "`party`, `receipt`, `model`, `fingerprint`, `agreed_fingerprint`, "
    "`guarantee`, `bytes_sent`, `rounds`, `seconds`",
    "silo classify": "`labels`, `classes`, `probabilities`, `accuracy`, `guarantee`; with "
    "`--page` also `page`",
    "silo explain": "`label`, `probabilities`, `shapelets`, `index`, `guarantee`; with `--page` "
    "also `page`",
    "silo show": "`party`, `fingerprint`, `plan`, `certificates`",
    "silo renew": "`party`, `certificate`, `sha256`",
    "fleet init": "`folder`, `run`, `rounds`, `n_min`, `mechanism`, `epsilon`, `delta`, "
    "`local_epsilon`",
    "fleet invite": "`name`, `code`, `days`",
    "fleet join": "`folder`, `name`, `run`, `mechanism`, `epsilon`, `delta`, `services`",
    "fleet leave": "`folder`, `told` (the services that have heard it)",
    "fleet renew": "`folder`; of a service also `certificates`, `in_use`; of a node also `told`; "
    "with `--sealing` also `key`",
    "fleet trust": "`folder`, `of`, `new`",
    "fleet next-run": "`plan`, `run`, `rounds`, `epsilon`, `delta`",
    "fleet take-plan": "`plan`, `taken` (the parts that took it)",
    "fleet new-node": "`folder`, `name`, `key`, `identity`",
    "fleet admit": "`name`, `nodes`",
    "fleet revoke": "`name`, `nodes`",
    "fleet shuffler": "`part`; then it goes on running",
    "fleet analyser": "`part`; then it goes on running",
    "fleet node": "`part`; then it goes on running, until the run is over",
    "fleet server": _RUN,
    "fleet up": _RUN,
    "fleet status": "`shuffler`; unless FOLDER is the shuffler's also " + _RUN,
    "fleet classify": "`labels`, `accuracy`, `guarantee`, `rounds`",
    "fleet export": "`bundle`, `model`, `classes`, `recognition`, `guarantee` (`training`, "
    "`release`, `both`)",
    "account shuffle": "`central_epsilon`, `theorem`, `conditions`",
    "account calibrate": "`local_epsilon`, `central_epsilon`",
    "account compose": "`central_epsilon`, `delta`, `rounds`",
    "account group": "`epsilon`, `delta`, `size`",
    "account gaussian": "`epsilon`, `delta`, `rounds`, `neighbours`",
    "account table1": "`delta`, `reproduced`, `cells`",
    "audit": "`claimed_epsilon`, `lower_bound`, `confidence`, `trials`, `verdict` (`consistent` or "
    "`refuted`), `method`, `detectable_epsilon`, `detectable_event`, `power`",
    "attack pidp": _ATTACK,
    "attack softshape": _ATTACK,
    "attack timefl": _ATTACK,
    "ledger init": "`db`, `budgets`, `anchor`",
    "ledger show": "`entries`, `count`, `spent`, `remaining`, `budgets`, `subjects`",
    "ledger verify": "`intact`, `entries`, `anchor`; exit code 1 if it is not intact",
    "ledger anchor": "`anchor`, `out`",
    "ledger export": "`entries`, `out`, `anchor`",
    "ledger budget": "`entry`, `budgets`, `anchor`",
    "arena run": "`done`, `failed`, `remaining`, `results`; with `--reuse` also `copied`; "
    "where raw archives are not at hand also `missing` (data set to command)",
    "arena report": "`report`, `pictures`; with `--fleet-page` also `fleet_page`",
    "arena tables": "`page`, `tables`, `uncommitted`",
}
# Options that were renamed so that one thing has one name; the old ones still work.
FORMER = {
    "train timefl": {"--report": "--page"},
    "attack pidp": {"--out": "--page"},
    "attack softshape": {"--out": "--page"},
    "attack timefl": {"--out": "--page"},
    "fleet admit": {"--key": "--signing-key"},
    "serve": {"--name": "--certificate-name"},
}


def guide_of(path: Sequence[str]) -> str | None:
    """The page that explains a command: its own, else its group's."""
    return GUIDES.get(" ".join(path)) or GUIDES.get(path[0])


def add_to_help(tree: Any) -> None:
    """Add the guide's address to the help of every command, and end it with its JSON keys."""
    for path, command in leaves(tree):
        keys, guide = KEYS.get(" ".join(path)), guide_of(path)
        if guide:
            command.help = f"{command.help}\n\nGuide: {guide}"
        if keys:
            command.epilog = f"JSON: {keys}."
        _give_help_back(command)


def _give_help_back(command: Any) -> None:
    """The help of arguments as declared: click 8.5 resets what typer 0.20 has set."""
    arguments = arguments_of(command)
    if not arguments:
        return
    declared = get_type_hints(inspect.unwrap(command.callback), include_extras=True)
    for argument in arguments:
        for extra in getattr(declared[argument.name], "__metadata__", ()):
            argument.help = argument.help or getattr(extra, "help", None)


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """The words of a call with former names of options replaced by those of today."""
    words = list(arguments)
    path = next((path for path in FORMER if words[: path.count(" ") + 1] == path.split()), None)
    if path is None:
        return words
    end = words.index("--") if "--" in words else len(words)
    return [_renamed(word, FORMER[path]) for word in words[:end]] + words[end:]


def _renamed(word: str, former: dict[str, str]) -> str:
    name, sign, value = word.partition("=")
    return f"{former.get(name, name)}{sign}{value}"
