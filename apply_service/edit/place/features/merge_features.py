"""All features of a whole merge."""

from __future__ import annotations

from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.instruction_features import INSTRUCTION_FEATURES
from apply_service.edit.place.features.merge_view import MergeView
from apply_service.edit.place.features.name_features import NAME_FEATURES
from apply_service.edit.place.features.result_features import RESULT_FEATURES
from apply_service.edit.place.features.sent_features import SENT_FEATURES
from apply_service.edit.place.features.way_features import WAY_FEATURES

MERGE_FEATURES: FeatureSet[MergeView, float] = FeatureSet(
    [
        *WAY_FEATURES.features,
        *NAME_FEATURES.features,
        *RESULT_FEATURES.features,
        *SENT_FEATURES.features,
        *INSTRUCTION_FEATURES.features,
    ]
)
