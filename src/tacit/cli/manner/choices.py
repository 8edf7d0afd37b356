"""The closed choices of options: shown in help, completed by shells, refused before any work.

They are written out here because `tacit --help` must not load the libraries that know them; a
test compares them with what the package accepts.
"""

from __future__ import annotations

from typing import Literal

Mode = Literal["sound", "published"]
ReleaseKind = Literal["label", "place", "vector", "shapes"]
Encoder = Literal["kernels", "softshape"]
Channel = Literal["optimal", "krr"]
Preset = Literal["paper", "tuned"]
DeviceFormat = Literal["npz", "web", "c"]
Part = Literal["test", "train"]
Quality = Literal["f", "ig", "ig-basic"]
SiloClassifier = Literal["ridge", "logistic", "forest"]
Scope = Literal["federated", "local-search", "local-transform", "local", "global"]
Distance = Literal["dot", "elementwise"]
Mechanism = Literal["privunit", "distributed"]
Split = Literal["iid", "subject", "dirichlet"]
Network = Literal["paper", "light"]
Transport = Literal["flower", "https"]
FleetService = Literal["shuffler", "analyser", "server"]
Randomizer = Literal["any", "krr", "privunit"]
Period = Literal["all", "day", "week", "month"]
Target = Literal["device_labels", "classes"]
Engine = Literal["local", "ray"]
LogFormat = Literal["text", "json"]
ImportFormat = Literal[
    "edf", "wfdb", "matlab", "hdf5", "csv", "parquet", "npz",
    "uci-har", "wisdm", "hhar", "sleep-edf", "paderborn", "ptb-xl",
]  # fmt: skip
