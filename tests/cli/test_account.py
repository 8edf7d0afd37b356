"""`tacit account`: the promised keys, plain words, and one sentence for bad input."""

from __future__ import annotations

import pytest

from command import assert_refused, tacit

Capture = pytest.CaptureFixture[str]


def test_shuffle_gives_the_promised_keys_and_value(capsys: Capture) -> None:
    found = tacit(
        capsys, "account", "shuffle", "--local-epsilon", 1.16, "--n", 10000, "--delta", 1e-9,
        "--json",
    ).json  # fmt: skip
    assert 0.0935 <= found["central_epsilon"] <= 0.0965
    assert "2012.12803" in found["theorem"]
    assert any("do not collude" in condition for condition in found["conditions"])
    assert found["guarantee"]["epsilon"] == found["central_epsilon"]
    assert found["closed_form_epsilon"] > found["central_epsilon"]
    assert found["amplification"] > 10


@pytest.mark.parametrize("json_flag", [(), ("--json",)])
def test_it_says_plainly_that_there_is_next_to_no_amplification(
    capsys: Capture, json_flag: tuple[str, ...]
) -> None:
    command = ("account", "shuffle", "--local-epsilon", 4, "--n", 100, "--delta", 1e-3)
    outcome = tacit(capsys, *command, *json_flag)
    assert outcome.code == 0
    assert "next to no amplification" in outcome.out
    if not json_flag:
        assert "central epsilon" in outcome.out
        assert not {"None", "True", "central_epsilon"} & set(outcome.out.split())


def test_people_see_epsilons_rounded_up(capsys: Capture) -> None:
    command = ("account", "shuffle", "--local-epsilon", 4, "--n", 100, "--delta", 1e-3)
    assert "3.998" in tacit(capsys, *command).out  # 3.99746 to four digits, upwards


@pytest.mark.seconds
def test_calibrate_then_shuffle_stays_below_the_target(capsys: Capture) -> None:
    shared = ("--n", 1000, "--delta", 1e-6, "--rounds", 10, "--json")
    local = tacit(capsys, "account", "calibrate", "--central-epsilon", 1, *shared).json
    again = tacit(
        capsys, "account", "shuffle", "--local-epsilon", local["local_epsilon"], *shared
    ).json
    assert 0.99 < again["central_epsilon"] <= 1.0
    assert again["central_epsilon"] == local["central_epsilon"]


@pytest.mark.parametrize(
    ("options", "theorem", "low", "high"),
    [
        (("--randomizer", "any"), "2012.12803", 1.9, 2.0),
        (("--randomizer", "krr", "--symbols", 8), "privacy blanket of k-ary", 0.8551, 0.87),
        (("--symbols", 8), "privacy blanket of k-ary", 0.8551, 0.87),
        (("--randomizer", "privunit"), "privacy blanket of PrivUnitG", 0.9, 1.6),
        (("--randomizer", "privunit", "--cap", 0.1), "privacy blanket of PrivUnitG", 0.7, 0.8551),
    ],
)
def test_a_known_randomizer_gives_a_smaller_epsilon_and_its_theorem(
    capsys: Capture, options: tuple[object, ...], theorem: str, low: float, high: float
) -> None:
    command = ("account", "shuffle", "--local-epsilon", 2, "--n", 100, "--delta", 1e-5, "--json")
    found = tacit(capsys, *command, *options).json
    assert low <= found["central_epsilon"] <= high
    assert theorem in found["theorem"]
    assert any("every report is" in line for line in found["conditions"]) == ("any" not in options)
    several = tacit(capsys, *command, *options, "--rounds", 4).json
    assert found["central_epsilon"] < several["central_epsilon"] <= 8.0


def test_a_cap_of_zero_is_refused_as_a_cap_of_privunit(capsys: Capture) -> None:
    """It was taken for k-ary randomized response without its symbols."""
    batch = ("--local-epsilon", 2, "--n", 100, "--delta", 1e-5)
    for options in ((), ("--randomizer", "privunit")):
        refused = tacit(capsys, "account", "shuffle", *batch, *options, "--cap", 0)
        assert_refused(refused, "cap")
        assert "krr" not in refused.err


def test_a_small_cap_keeps_privunit_below_one_and_the_cap_is_stated(capsys: Capture) -> None:
    """Local 4, n = 1000, delta 1e-6: at the cap that fleets use no proof can come below 1.3."""
    batch = ("--local-epsilon", 4, "--n", 1000, "--delta", 1e-6)
    command = ("account", "shuffle", *batch, "--randomizer", "privunit", "--json")
    default, small = tacit(capsys, *command).json, tacit(capsys, *command, "--cap", 0.02).json
    assert 1.38 < default["central_epsilon"] < 1.40
    assert default["cap"] == pytest.approx(0.0648, abs=1e-4)
    assert 0.98 < small["central_epsilon"] <= 1.0
    assert small["cap"] == 0.02
    assert "B1, B4 and B5" in small["theorem"]


def test_a_mixed_batch_gives_every_local_epsilon_its_own_bound(capsys: Capture) -> None:
    command = ("account", "shuffle", "--delta", 1e-6, "--symbols", 4, "--json")
    found = tacit(capsys, *command, "--mixed", "0.9:500,1.0:500,9.0:10").json
    assert [(one["local_epsilon"], one["n"]) for one in found["clients"]] == [
        (0.9, 500), (1.0, 500), (9.0, 10)
    ]  # fmt: skip
    alone = tacit(capsys, *command, "--local-epsilon", 1.0, "--n", 500).json["central_epsilon"]
    assert found["clients"][1]["central_epsilon"] < 0.8 * alone
    assert found["n"] == 1010
    several = tacit(capsys, *command, "--mixed", "0.9:500,1.0:500,9.0:10", "--rounds", 3).json
    for one, three in zip(found["clients"], several["clients"], strict=True):
        assert one["central_epsilon"] < three["central_epsilon"] <= 3.0 * one["local_epsilon"]
    assert several["rounds"] == 3
    assert "3 rounds composed" in several["theorem"]
    assert found["central_epsilon"] == found["clients"][2]["central_epsilon"]


@pytest.mark.parametrize(
    "options", [("--n", 10), ("--mixed", "1:5", "--n", 10), ("--local-epsilon", 1), ()]
)
def test_a_batch_is_named_once_and_whole(capsys: Capture, options: tuple[object, ...]) -> None:
    assert_refused(tacit(capsys, "account", "shuffle", "--delta", 1e-6, *options), "epsilon")


@pytest.mark.parametrize(
    "options",
    [
        ("--randomizer", "krr"),
        ("--randomizer", "any", "--symbols", 3),
        ("--randomizer", "any", "--cap", 0.1),
        ("--randomizer", "privunit", "--symbols", 3),
        ("--symbols", 3, "--cap", 0.1),
        ("--randomizer", "laplace"),
    ],
)
def test_a_randomizer_that_makes_no_sense_is_refused(
    capsys: Capture, options: tuple[object, ...]
) -> None:
    command = ("account", "shuffle", "--local-epsilon", 2, "--n", 100, "--delta", 1e-5)
    assert_refused(tacit(capsys, *command, *options), "randomizer")


def test_a_fleet_of_privunit_reports_is_calibrated_by_the_blanket(capsys: Capture) -> None:
    shared = ("--n", 100, "--delta", 1e-5, "--rounds", 320, "--randomizer", "privunit", "--json")
    found = tacit(capsys, "account", "calibrate", "--central-epsilon", 8, *shared).json
    assert 0.83 <= found["local_epsilon"] <= 0.85
    assert found["central_epsilon"] <= 8.0
    rounds = f"{found['local_epsilon']}:100x320"
    again = tacit(
        capsys, "account", "compose", "--round", rounds, "--delta", 1e-5,
        "--randomizer", "privunit", "--json",
    ).json  # fmt: skip
    assert again["central_epsilon"] == pytest.approx(found["central_epsilon"])


def test_rounds_of_different_sizes_compose(capsys: Capture) -> None:
    command = ("account", "compose", "--delta", 1e-6, "--json")
    nine = tacit(capsys, *command, "--round", "1:1000x9").json
    ten = tacit(capsys, *command, "--round", "1:1000x9", "--round", "1:640").json
    assert nine["rounds"] == 9
    assert nine["central_epsilon"] < ten["central_epsilon"] < 10
    assert_refused(tacit(capsys, *command, "--round", "1000"), "LOCAL_EPSILON:N")
    assert_refused(tacit(capsys, *command, "--round", "1:10x0"), "TIMES")


def test_group_and_gaussian(capsys: Capture) -> None:
    group = tacit(capsys, "account", "group", "--epsilon", 0.5, "--size", 4, "--json").json
    assert group["epsilon"] == pytest.approx(2.0)
    sums = ("account", "gaussian", "--noise-multiplier", 12.754, "--rounds", 100, "--delta", 1e-5)
    assert tacit(capsys, *sums, "--json").json["epsilon"] == pytest.approx(8.0, rel=1e-3)
    smaller = tacit(capsys, *sums, "--continuous", "--json").json["epsilon"]
    assert smaller == pytest.approx(7.4, rel=0.05)


@pytest.mark.seconds
def test_table_1_is_reproduced_beside_the_proven_values(capsys: Capture) -> None:
    found = tacit(capsys, "account", "table1", "--json").json
    assert found["reproduced"] == len(found["cells"]) == 25
    assert all(c["proven_central_epsilon"] < c["claimed_central_epsilon"] for c in found["cells"])
    assert "no guarantee" in found["note"]
    shown = tacit(capsys, "account", "table1").out
    assert "proven" in shown
    assert "True" not in shown


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--local-epsilon", "nan", "local_epsilon"),
        ("--local-epsilon", "0", "local_epsilon"),
        ("--local-epsilon", "inf", "local_epsilon"),
        ("--delta", "0.01", "1/n"),
        ("--delta", "0", "delta"),
        ("--delta", "nan", "delta"),
        ("--n", "0", "n must be"),
        ("--n", "1.5", "--n"),
        ("--rounds", "0", "rounds"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    capsys: Capture, option: str, value: str, word: str
) -> None:
    options = {"--local-epsilon": "1", "--n": "100", "--delta": "1e-6", option: value}
    flat = [part for pair in options.items() for part in pair]
    assert_refused(tacit(capsys, "account", "shuffle", *flat), word)


def test_a_large_delta_can_be_forced(capsys: Capture) -> None:
    command = ("account", "shuffle", "--local-epsilon", 1, "--n", 100, "--delta", 0.05)
    assert_refused(tacit(capsys, *command), "1/n")
    assert tacit(capsys, *command, "--force", "--json").json["central_epsilon"] < 1
