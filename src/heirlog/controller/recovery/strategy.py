"""What an operator wants of a partition that has lost every replica known to be complete.

    Aggressive   availability: the best log among those that answer within a few seconds
    Balanced     the best log once everybody has answered who may hold the lost records (the default)
    None         nobody, until an operator decides

`unclean.recovery.strategy` of the topic, else of the cluster. Where nobody has set it anywhere, the deprecated
`unclean.leader.election.enable` speaks: true is Aggressive, false Balanced. A strategy that is set wins over the flag,
whichever of them stands nearer to the topic: it is the newer word.

Source: KIP-966, "Unclean recovery" and "Config changes"; review of Kafka's PR 15603 (the strategy wins).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import topic_value, topic_value_set
from heirlog.metadata.image import Image

STRATEGY: Final = "unclean.recovery.strategy"
UNCLEAN_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
TIMEOUT: Final = "unclean.recovery.timeout.ms"


class Strategy(Enum):
    AGGRESSIVE = "Aggressive"
    BALANCED = "Balanced"
    NONE = "None"


def strategy_of(image: Image, static: StaticConfig, topic: str) -> Strategy:
    """What counts for this topic."""
    explicit = topic_value_set(image, static, topic, STRATEGY)
    if explicit is not None:
        return Strategy(explicit)
    allows_unclean = topic_value(image, static, topic, UNCLEAN_ELECTION_ENABLE)
    return Strategy.AGGRESSIVE if allows_unclean else Strategy.BALANCED
