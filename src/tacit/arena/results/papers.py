"""docs/papers.md: every equation, table, figure and claim of the papers, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.arena.results.claims import all_claims
from tacit.arena.results.softshape import table2_records, table3_records
from tacit.arena.results.tables import Record, Results, table
from tacit.arena.results.verdicts import in_short
from tacit.arena.suites import suite_tasks
from tacit.arena.task import Task, task_from_dict

TABLE2 = "tacit arena run softshape-table2 --out DIR"
TABLE3 = "tacit arena run softshape-table3 --out DIR"
FIGURES = "tacit arena run softshape-figures --out DIR"
SOFTSHAPE = "tacit train softshape --data GunPoint --mode published"
FEDST = "tacit arena run fedst --out DIR"
FEATURES = "tacit arena run fedst-features --out DIR"
SECURE = "tacit arena run fedst-secure --out DIR"
CONTRACT = "tacit arena run fedst-contract --out DIR"
TRAIN_FEDST = "tacit train fedst --data GunPoint"
TRAIN_IG = "tacit train fedst --data GunPoint --quality ig"
VARIANTS = "python benchmarks/silo_variants.py"
SPEED = "python benchmarks/silo_speed.py"
FLEET = "tacit arena run fleet-published --out DIR"
TIMEFL = "tacit train timefl --data WISDM --mode published"
REPORT = "tacit arena report DIR"

Plain = Mapping[str, Any]


# Tables whose cells several suites run alike: what they show is what counts as recorded.
_SHOWN: Mapping[str, Callable[[Results], Sequence[Record]]] = {
    "softshape-table2": table2_records,
    "softshape-table3": table3_records,
}


@dataclass(frozen=True, slots=True)
class Runs:
    """How much of a suite is recorded: of the tasks that `only` lets through."""

    suite: str
    only: Callable[[Plain], bool] = lambda task: True

    def told(self, results: Results) -> str:
        """The tasks of the suite whose cell its table shows, whichever suite recorded it."""
        tasks = {_cell(task) for task in suite_tasks(self.suite) if self.only(task.to_dict())}
        merged = _SHOWN.get(self.suite)
        shown = merged(results) if merged else results.suite(self.suite)
        done = {_cell(task_from_dict(dict(record["task"]))) for record in shown} & tasks
        return f"recorded: {len(done)} of {len(tasks)} runs"


@dataclass(frozen=True, slots=True)
class Lines:
    """How many lines a script's file has of one part."""

    file: str
    part: str

    def told(self, results: Results) -> str:
        """Their number, or that there is none."""
        found = sum(line.get("part") == self.part for line in results.lines(self.file))
        return f"recorded: {found} points" if found else "not recorded yet"


@dataclass(frozen=True, slots=True)
class Claim:
    """The verdict on a claim of the abstract."""

    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a paper has: where it is, as `module:name`, and what became of it."""

    paper: str
    name: str
    where: str
    verdict: Runs | Lines | Claim | str
    command: str


def _cell(task: Task) -> str:
    return replace(task, suite="any").key


def _preset(name: str) -> Callable[[Plain], bool]:
    """Runs of the paper's own method in one preset."""

    def only(task: Plain) -> bool:
        ours = task["method"] == "softshape-published"
        return bool(ours and task["options"].get("preset", "tuned") == name)

    return only


def _rival(method: str) -> Callable[[Plain], bool]:
    """Runs of a rival: one a cell, as in the paper."""

    def only(task: Plain) -> bool:
        return bool(task["method"] == method and task["seed"] == 0)

    return only


def _sized(clients: int, preset: str) -> Callable[[Plain], bool]:
    """Runs of one size of the fleet and one network."""

    def only(task: Plain) -> bool:
        options = task["options"]
        return bool((options["n_clients"], options["preset"]) == (clients, preset))

    return only


_NETWORK = "tacit.local.softshape.network"
_MOE = "tacit.local.softshape.moe"
_QUALITY = "tacit.silo.fedst.quality"
_PERTURB = "tacit.fleet.published.perturbation"
_SUITES = "tacit.arena.softshape.suites"
_FLEETS = "tacit.arena.fleet.suites"
_RESULTS = "tacit.arena.results"
_CURVES = "tacit.report.arena.timefl_published"
_LETTER = "to the letter"
_S, _F, _T = "DP-SoftShape", "FedST", "DP-TimeFL"
_SOFTSHAPE_ITEMS: tuple[Item, ...] = (
    Item(_S, "Fig. 1, architecture", f"{_NETWORK}:SoftShapeNetwork", "a drawing", SOFTSHAPE),
    Item(_S, "Eq. 1-2, patches and embedding", f"{_NETWORK}:SoftShapeNetwork", _LETTER, SOFTSHAPE),
    Item(_S, "Section 3.1.3, L1 clip", f"{_NETWORK}:clip_l1", "preset paper only", SOFTSHAPE),
    Item(_S, "Eq. 3, attention scores", f"{_NETWORK}:GatedAttention", _LETTER, SOFTSHAPE),
    Item(_S, "Eq. 4, noise by attention", f"{_NETWORK}:SoftShapeNetwork",
         Claim("releases under local differential privacy, epsilon spent unevenly by attention"),
         "tacit attack softshape"),
    Item(_S, "Eq. 5-7, sparsification", f"{_NETWORK}:sparsify", "tokens kept in order of time",
         SOFTSHAPE),
    Item(_S, "Eq. 8-9, experts", f"{_MOE}:SparseMixture", _LETTER, SOFTSHAPE),
    Item(_S, "Eq. 10, three convolutions", f"{_MOE}:Inception",
         "widths, and the map of the pooled branch, are ours", SOFTSHAPE),
    Item(_S, "Eq. 11, normalisation", f"{_NETWORK}:SoftShapeBlock", _LETTER, SOFTSHAPE),
    Item(_S, "Eq. 12-13, loss", f"{_MOE}:balance_loss", _LETTER, SOFTSHAPE),
    Item(_S, "Section 3.4.2, training", "tacit.local.softshape.training:train_network",
         "preset paper: to the letter", SOFTSHAPE),
    Item(_S, "Table 1, data sets", f"{_SUITES}:SOFTSHAPE_SETS", "19 of 20: Yoga is not at hand",
         TABLE2),
    Item(_S, "Table 2, preset paper", "tacit.arena.softshape.published:run_published",
         Runs("softshape-table2", _preset("paper")), TABLE2),
    Item(_S, "Table 2, preset tuned", "tacit.arena.softshape.published:run_published",
         Runs("softshape-table2", _preset("tuned")), TABLE2),
    Item(_S, "Table 2, FCN", "tacit.arena.deep_rivals",
         Runs("softshape-table2", _rival("fcn")), TABLE2),
    Item(_S, "Table 2, InceptionTime", "tacit.arena.deep_rivals",
         Runs("softshape-table2", _rival("inceptiontime")), TABLE2),
    Item(_S, "Table 2, ROCKET", "tacit.arena.rivals",
         Claim("against .565 for rocket in the same setting"), TABLE2),
    Item(_S, "Table 2, Arsenal", "tacit.arena.rivals",
         Claim("against .553 for arsenal in the same setting"), TABLE2),
    Item(_S, "Table 3, preset paper", f"{_SUITES}:table3",
         Runs("softshape-table3", _preset("paper")), TABLE3),
    Item(_S, "Table 3, preset tuned", f"{_SUITES}:table3",
         Runs("softshape-table3", _preset("tuned")), TABLE3),
    Item(_S, "Table 3, Mixture of Experts", f"{_RESULTS}.softshape:ablations",
         Claim("the Mixture-of-Experts layer recovers features"), TABLE3),
    Item(_S, "Table 4; Fig. 2, 6, 7 and 8", "tacit.report.arena.softshape:table2_blocks",
         "drawn from the records of Table 2", REPORT),
    Item(_S, "Fig. 3, 4 and 5", "tacit.report.arena.softshape_figures:figure_blocks",
         Runs("softshape-figures"), FIGURES),
    Item(_S, "abstract: .722", f"{_RESULTS}.softshape_claims",
         Claim("mean accuracy .722 over four budgets"), TABLE2),
    Item(_S, "abstract: a uniform budget", f"{_RESULTS}.softshape_claims",
         Claim("a uniform-budget version loses most of this gain"), TABLE3),
    Item(_S, "abstract: comparable epsilon", f"{_RESULTS}.softshape_claims",
         Claim("that setting makes epsilon comparable between methods"),
         "tacit arena run frontier --out DIR"),
)  # fmt: skip
_FEDST_ITEMS: tuple[Item, ...] = (
    Item(_F, "Fig. 1, framework", "tacit.silo.fedst.program", "a drawing", TRAIN_FEDST),
    Item(_F, "shapelet distance and transform", "tacit.silo.fedst.distances:own_distances",
         _LETTER, TRAIN_FEDST),
    Item(_F, "Algorithm 1, basic protocol", "tacit.silo.fedst.distances:distances_elementwise",
         Claim("the basic protocol is secure and accurate"), SECURE),
    Item(_F, "Eq. 3, information gain", f"{_QUALITY}:ig_quality_basic",
         "one class against the rest", TRAIN_IG),
    Item(_F, "Fig. 2, throughputs", "-", "not measured: other operations here", "-"),
    Item(_F, "Fig. 3, pruning", "-", "not used, as in the paper", "-"),
    Item(_F, "Algorithms 2 and 3, dot product", "tacit.audit.attacks.pidp",
         Claim("the optimised protocols are secure"), "tacit attack pidp"),
    Item(_F, "the dot product in its place", "tacit.silo.fedst.secure_distances",
         "products of replicated shares", TRAIN_FEDST),
    Item(_F, "sorting for information gain", "tacit.silo.secure.sorting_network",
         "over replicated shares", TRAIN_IG),
    Item(_F, "F in place of information gain", f"{_QUALITY}:f_quality", "our default", TRAIN_FEDST),
    Item(_F, "Fig. 4, 5 and 8", "tacit.report.arena.fedst:fedst_blocks", Runs("fedst"), FEDST),
    Item(_F, "Fig. 4c and 4d, both stages", f"{_RESULTS}.fedst_claims",
         Claim("both stages are indispensable (Fig. 4c, 4d)"), FEDST),
    Item(_F, "Fig. 6a-e, steps", f"{_RESULTS}.fedst:speed_steps", Lines("silo_variants", "steps"),
         VARIANTS),
    Item(_F, "Fig. 6f-i, variants", f"{_RESULTS}.fedst:speed", Lines("silo_variants", "variants"),
         VARIANTS),
    Item(_F, "Fig. 7, search times", "tacit.report.arena.fedst_real:secure_blocks",
         Runs("fedst-secure", lambda t: bool(t["options"]["quality"] == "ig")), SECURE),
    Item(_F, "Fig. 9, interpretation", "tacit.silo.explain", Claim("interpretable"), TRAIN_FEDST),
    Item(_F, "Fig. 10, contracts of time", "tacit.silo.fedst.contract", Runs("fedst-contract"),
         CONTRACT),
    Item(_F, "future work: intervals and words", "tacit.silo.fedst.dictionary",
         Runs("fedst-features"), FEATURES),
    Item(_F, "abstract: effective", f"{_RESULTS}.fedst_claims", Claim("effective in accuracy"),
         FEDST),
    Item(_F, "abstract: three orders of magnitude", f"{_RESULTS}.fedst_claims",
         Claim("three orders of magnitude of speedup"), SPEED),
    Item(_F, "abstract: first", "-", Claim("first to study the topic"), "-"),
)  # fmt: skip
_TIMEFL_ITEMS: tuple[Item, ...] = (
    Item(_T, "Fig. 1, framework", "tacit.fleet.published.training:run_published", "a drawing",
         TIMEFL),
    Item(_T, "Eq. 1-3, perturbation", f"{_PERTURB}:perturb",
         Claim("local differential privacy moves the trust boundary to the clients"),
         "tacit attack timefl"),
    Item(_T, "clip in L2", f"{_PERTURB}:clip_rows", _LETTER, TIMEFL),
    Item(_T, "the shuffler's delays", f"{_PERTURB}:delays", _LETTER, TIMEFL),
    Item(_T, "Theorem 1, amplification", "tacit.accounting:shuffle_epsilon",
         Claim("shuffling amplifies privacy and so spares accuracy"),
         "tacit account shuffle --local-epsilon 8 --n 100 --delta 1e-3"),
    Item(_T, "moments accountant, end at delta", f"{_PERTURB}:moments_delta", _LETTER, TIMEFL),
    Item(_T, "Table I, budgets compared", "tacit.fleet.published.training:true_guarantee",
         "what is really promised is stated", TIMEFL),
    Item(_T, "Table II, settings", "tacit.fleet.published.settings:table_two", _LETTER, TIMEFL),
    Item(_T, "Table II, batch sizes", "tacit.fleet.table_two:batch_size_of", _LETTER, TIMEFL),
    Item(_T, "the five data sets", f"{_FLEETS}:PUBLISHED_SETS", Claim("on five data sets"), FLEET),
    Item(_T, "CDP-FL", "tacit.fleet.published.central:choose_clip_norm",
         "calibrated to the same nominal pair", FLEET),
    Item(_T, "Fig. 2, accuracy by clients", f"{_RESULTS}.tables:fleet_nominal",
         Runs("fleet-published", lambda t: bool(t["options"]["preset"] == "tuned")), FLEET),
    Item(_T, "Fig. 3, N = 100, light network", f"{_CURVES}:published_blocks",
         Runs("fleet-published", _sized(100, "tuned")), FLEET),
    Item(_T, "Fig. 3, N = 100, the paper's network", f"{_CURVES}:published_blocks",
         Runs("fleet-published", _sized(100, "paper")), FLEET),
    Item(_T, "Fig. 4, N = 1000, light network", f"{_CURVES}:published_blocks",
         Runs("fleet-published", _sized(1000, "tuned")), FLEET),
    Item(_T, "Fig. 5, Sleep-EDF and MFD", f"{_FLEETS}:IMPORTED_SETS",
         Runs("fleet-published", lambda t: t["data"] in ("SleepEDF", "MFD")), FLEET),
    Item(_T, "Fig. 6, delta by round", f"{_CURVES}:published_blocks",
         "drawn from the records of Fig. 3 and 4", REPORT),
    Item(_T, "abstract: .9% below FedAvg", f"{_RESULTS}.timefl_claims",
         Claim("minimal accuracy loss: 0.9% below FedAvg at 100 clients"), FLEET),
    Item(_T, "abstract: 2.8% below FedAvg", f"{_RESULTS}.timefl_claims",
         Claim("minimal accuracy loss: 2.8% below FedAvg at 1000 clients"), FLEET),
    Item(_T, "abstract: 7.2% above central DP", f"{_RESULTS}.timefl_claims",
         Claim("7.2% better than central DP at the same privacy, 100 clients"), FLEET),
    Item(_T, "abstract: 5.9% above central DP", f"{_RESULTS}.timefl_claims",
         Claim("5.9% better than central DP at the same privacy, 1000 clients"), FLEET),
)  # fmt: skip
ITEMS = (*_SOFTSHAPE_ITEMS, *_FEDST_ITEMS, *_TIMEFL_ITEMS)


def papers_table(results: Results) -> str:
    """All items, each with the verdict that docs/results.md has, or what is recorded."""
    claims = {(paper, claim): verdict for paper, claim, verdict in in_short(all_claims(results))}
    rows = []
    for item in ITEMS:
        verdict = item.verdict
        if isinstance(verdict, Claim):
            told = claims[item.paper, verdict.text]
        else:
            told = verdict if isinstance(verdict, str) else verdict.told(results)
        where, command = (_code(text) for text in (item.where, item.command))
        rows.append((item.paper, item.name, where, told, command))
    return table(("paper", "what", "where", "verdict", "command"), rows)


def _code(text: str) -> str:
    return text if text == "-" else f"`{text}`"


PAPER_TABLES: dict[str, Callable[[Results], str]] = {"papers": papers_table}
