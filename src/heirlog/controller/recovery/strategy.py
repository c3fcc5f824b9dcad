"""What should happen to a partition that has lost every replica known to be complete.

    Aggressive   availability: elect the best log among the replicas that answer within a few seconds
    Balanced     elect the best log once every replica that may hold the lost records has answered (the default)
    None         elect no leader until an operator decides

The value is `unclean.recovery.strategy` of the topic, else of the cluster. If neither is set, the deprecated
`unclean.leader.election.enable` decides: true means Aggressive, false means Balanced. A strategy that is set wins over
the flag, even a cluster-wide strategy over a topic's flag, because it is the newer configuration.

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
    """The strategy of this topic."""
    explicit = topic_value_set(image, static, topic, STRATEGY)
    if explicit is not None:
        return Strategy(explicit)
    allows_unclean = topic_value(image, static, topic, UNCLEAN_ELECTION_ENABLE)
    return Strategy.AGGRESSIVE if allows_unclean else Strategy.BALANCED
