"""All features of one segment in one place."""

from __future__ import annotations

from apply_service.edit.place.features.alignment_features import ALIGNMENT_FEATURES
from apply_service.edit.place.features.candidate_view import CandidateView
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.place_features import PLACE_FEATURES

CANDIDATE_FEATURES: FeatureSet[CandidateView] = FeatureSet(
    [*ALIGNMENT_FEATURES.features, *PLACE_FEATURES.features]
)
