"""Loading, validation and partitioning of time-series data sets."""

from __future__ import annotations

from tacit.data.dataset import Dataset
from tacit.data.load import list_datasets, load_dataset, load_series
from tacit.data.partition import hold_out_subjects, split_clients, split_parties
from tacit.data.validate import as_cube, as_labels

__all__ = [
    "Dataset",
    "as_cube",
    "as_labels",
    "hold_out_subjects",
    "list_datasets",
    "load_dataset",
    "load_series",
    "split_clients",
    "split_parties",
]
