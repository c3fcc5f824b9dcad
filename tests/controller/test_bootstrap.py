"""The first records of a cluster."""

from __future__ import annotations

import pytest
from controller.fakes import static

from heirlog.controller.bootstrap import bootstrap_records, format_records
from heirlog.metadata.apply import apply_all
from heirlog.metadata.image import Image


def test_bootstrapping_with_elr_writes_the_cluster_level_min_isr() -> None:
    image = Image()
    apply_all(image, bootstrap_records(static(min_insync_replicas="2")), 0, 1)
    assert image.elr_enabled and image.config(4, "", "min.insync.replicas") == "2"


def test_bootstrapping_without_elr_writes_no_config() -> None:
    image = Image()
    formatted = format_records({"metadata.version": 29, "eligible.leader.replicas.version": 0, "kraft.version": 1})
    apply_all(image, bootstrap_records(static(), formatted), 0, 1)
    assert image.features == {"metadata.version": 29, "heirlog.recovery.version": 1} and not image.configs


@pytest.mark.parametrize(("given", "level"), [("true", 1), ("false", 0)])
def test_the_configuration_of_the_first_controller_says_whether_the_recovery_manager_begins_on(
    given: str, level: int
) -> None:
    image = Image()
    apply_all(image, bootstrap_records(static(unclean_recovery_manager_enabled=given)), 0, 1)
    assert image.features["heirlog.recovery.version"] == level


def test_a_formatted_level_of_the_recovery_manager_counts_for_more_than_the_configuration() -> None:
    for level in (0, 1):
        formatted = format_records({"metadata.version": 29, "heirlog.recovery.version": level})
        image = Image()
        given = str(level == 0).lower()
        apply_all(image, bootstrap_records(static(unclean_recovery_manager_enabled=given), formatted), 0, 1)
        assert image.features["heirlog.recovery.version"] == level


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ({"metadata.version": 22}, "23 to 29"),
        ({"metadata.version": 30}, "23 to 29"),
        ({"streams.version": 1}, "not a feature"),
        ({"eligible.leader.replicas.version": 1}, "needs metadata.version"),
    ],
)
def test_levels_that_cannot_be_are_refused(features: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        format_records(features)
