"""All features of one segment in many places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.features.alignment_features import ALIGNMENT_FEATURES
from apply_service.edit.place.features.candidate_table import CandidateTable
from apply_service.edit.place.features.feature import Column, FeatureSet, Rows, rows_of_table
from apply_service.edit.place.features.place_features import PLACE_FEATURES

# Rows and lines of the candidates that are looked at together.
MAX_TABLE_CELLS = 1_000_000
CANDIDATE_FEATURES: FeatureSet[CandidateTable, Column] = FeatureSet(
    [*ALIGNMENT_FEATURES.features, *PLACE_FEATURES.features]
)


def candidate_rows(part: Part) -> Rows:
    """`[num_candidates, num_features]`: the features of all candidates of a segment."""
    tables = [
        rows_of_table(CANDIDATE_FEATURES, table, len(table.candidates)) for table in _tables(part)
    ]
    return np.concatenate(tables) if tables else np.zeros((0, len(CANDIDATE_FEATURES.names)), "f4")


def _tables(part: Part) -> Iterator[CandidateTable]:
    start = num_cells = 0
    for end, one in enumerate(part.candidates, 1):
        num_cells += len(part.rows) + one.end - one.start
        if num_cells > MAX_TABLE_CELLS or end == len(part.candidates):
            yield CandidateTable(part, slice(start, end))
            start, num_cells = end, 0
