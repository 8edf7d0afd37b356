"""`--set key=value` of `tacit train softshape`: settings of the published network, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.local.softshape.settings import SoftShapeSettings

# Written out for --help, which loads no library; a test compares them with the presets.
DIFFERENCES = (
    "batch_size", "clip", "dropout", "epochs", "expert_dim", "kernel_basis", "kernels",
    "learning_rate", "n_experts", "patch_fraction", "patch_stride", "pooling", "rho", "schedule",
    "unit_tokens", "views",
)  # fmt: skip
ABLATIONS = ("attention_guided", "soft", "use_moe")


def changed_settings(preset: str, changes: list[str], *, mode: str) -> SoftShapeSettings | None:
    """The preset's settings with these changes; None without any."""
    from tacit.local.softshape.settings import preset_settings

    if not changes:
        return None
    if mode != "published":
        raise TacitError(
            f"--set {changes[0]} is of --mode published, not of {mode}; leave it out, or add "
            "--mode published."
        )
    given = dict(_pair(change) for change in changes)
    before = preset_settings(preset).to_dict()
    for name, value in given.items():
        if isinstance(before.get(name), bool) != isinstance(value, bool):
            kind = "true or false" if isinstance(before.get(name), bool) else "no true or false"
            raise TacitError(f"--set {name} takes {kind}, got {value!r}.")
    try:
        return preset_settings(preset, **given)
    except TypeError as error:
        raise TacitError(f"--set {', '.join(changes)} has a value of a wrong type.") from error


def _pair(change: str) -> tuple[str, Any]:
    """A name and a JSON value; `none` stands for null, sizes may be written 39,19,9."""
    name, sign, text = change.partition("=")
    if not sign or not name:
        raise TacitError(f"--set takes key=value, got {change!r}; for example epochs=100.")
    if text == "none":
        return name, None
    for form in (text, f"[{text}]"):
        try:
            value = json.loads(form)
        except ValueError:
            continue
        return name, tuple(value) if isinstance(value, list) else value
    return name, text
