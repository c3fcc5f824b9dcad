"""The topic configurations, with Kafka's names, types, limits, and the server configurations that give their defaults.

A value that Kafka supports and this version does not is refused, never ignored. Otherwise a topic could be configured
for compression, would not be compressed, and could fill its users' disks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heirlog.metadata.definition import (
    LONG_MAX,
    ConfigError,
    ConfigKey,
    boolean,
    double,
    integer,
    list_of,
    long,
    string,
)

_HOURS: Final = 3_600_000
_MINUTES: Final = 60_000

NO_TIERED_STORAGE: Final = "heirlog has no tiered storage"

COMPRESSION_TYPES: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS: Final = ("-1|[1-9]", "value must be between 1 and 9 or equal to -1")
RECOVERY_STRATEGIES: Final = ("Aggressive", "Balanced", "None")
LZ4_LEVELS: Final = (1, 17)
ZSTD_LEVELS: Final = (-131_072, 22)

_REPLICAS: Final = (
    r"\*|(\d+:\d+(\s*,\s*\d+:\d+)*)?",
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
)

_DEFINITIONS: Final = (
    list_of(
        "cleanup.policy",
        "delete",
        choices=("delete", "compact"),
        synonyms=(("log.cleanup.policy", 1),),
    ),
    string(
        "compression.type",
        "producer",
        choices=COMPRESSION_TYPES,
        synonyms=(("compression.type", 1),),
    ),
    integer("compression.gzip.level", -1, form=GZIP_LEVELS, synonyms=(("compression.gzip.level", 1),)),
    integer("compression.lz4.level", 9, LZ4_LEVELS[0], at_most=LZ4_LEVELS[1], synonyms=(("compression.lz4.level", 1),)),
    integer(
        "compression.zstd.level", 3, ZSTD_LEVELS[0], at_most=ZSTD_LEVELS[1], synonyms=(("compression.zstd.level", 1),)
    ),
    long("delete.retention.ms", 86_400_000, 0, synonyms=(("log.cleaner.delete.retention.ms", 1),)),
    long("file.delete.delay.ms", 60_000, 0, synonyms=(("log.segment.delete.delay.ms", 1),)),
    long("flush.messages", LONG_MAX, 1, synonyms=(("log.flush.interval.messages", 1),)),
    long(
        "flush.ms",
        LONG_MAX,
        0,
        synonyms=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    ),
    list_of("follower.replication.throttled.replicas", "", form=_REPLICAS),
    integer("index.interval.bytes", 4096, 0, synonyms=(("log.index.interval.bytes", 1),)),
    integer("internal.segment.bytes", None, 14, synonyms=(("internal.segment.bytes", 1),)),
    list_of("leader.replication.throttled.replicas", "", form=_REPLICAS),
    long("local.retention.bytes", -2, -2, synonyms=(("log.local.retention.bytes", 1),)),
    long("local.retention.ms", -2, -2, synonyms=(("log.local.retention.ms", 1),)),
    long("max.compaction.lag.ms", LONG_MAX, 1, synonyms=(("log.cleaner.max.compaction.lag.ms", 1),)),
    integer("max.message.bytes", 1_048_588, 0, synonyms=(("message.max.bytes", 1),)),
    long(
        "message.timestamp.after.max.ms",
        _HOURS,
        0,
        synonyms=(("log.message.timestamp.after.max.ms", 1),),
    ),
    long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        0,
        synonyms=(("log.message.timestamp.before.max.ms", 1),),
    ),
    string(
        "message.timestamp.type",
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        synonyms=(("log.message.timestamp.type", 1),),
    ),
    double("min.cleanable.dirty.ratio", 0.5, 0, at_most=1, synonyms=(("log.cleaner.min.cleanable.ratio", 1),)),
    long("min.compaction.lag.ms", 0, 0, synonyms=(("log.cleaner.min.compaction.lag.ms", 1),)),
    integer("min.insync.replicas", 1, 1, synonyms=(("min.insync.replicas", 1),)),
    boolean("preallocate", False, synonyms=(("log.preallocate", 1),)),
    boolean("remote.log.copy.disable", False, refused={"true": NO_TIERED_STORAGE}),
    boolean("remote.log.delete.on.disable", False, refused={"true": NO_TIERED_STORAGE}),
    boolean("remote.storage.enable", False, refused={"true": NO_TIERED_STORAGE}),
    long("retention.bytes", -1, synonyms=(("log.retention.bytes", 1),)),
    long(
        "retention.ms",
        7 * 24 * _HOURS,
        -1,
        synonyms=(("log.retention.ms", 1), ("log.retention.minutes", _MINUTES), ("log.retention.hours", _HOURS)),
    ),
    integer("segment.bytes", 1_073_741_824, 1_048_576, synonyms=(("log.segment.bytes", 1),)),
    integer("segment.index.bytes", 10_485_760, 4, synonyms=(("log.index.size.max.bytes", 1),)),
    long("segment.jitter.ms", 0, 0, synonyms=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOURS))),
    long("segment.ms", 7 * 24 * _HOURS, 1, synonyms=(("log.roll.ms", 1), ("log.roll.hours", _HOURS))),
    boolean("unclean.leader.election.enable", False, synonyms=(("unclean.leader.election.enable", 1),)),
    string(
        "unclean.recovery.strategy",
        "Balanced",
        choices=RECOVERY_STRATEGIES,
        synonyms=(("unclean.recovery.strategy", 1),),
    ),
)

TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {definition.name: definition for definition in _DEFINITIONS}


def validate_topic_configs(configs: Mapping[str, str | None], kept: Mapping[str, str] | None = None) -> None:
    """Raises ConfigError for the first unknown name, missing or bad value, in the order of the mapping.

    kept: the values that the topic has besides; they were judged when they came, and must go together with the new.
    """
    for name, text in configs.items():
        definition = TOPIC_CONFIGS.get(name)
        if definition is None:
            raise ConfigError(name, f"Unknown topic config name: {name}")
        if text is None:
            raise ConfigError(name, f"Null value not supported for topic configs: {name}")
        definition.parse(text)
    _check_lags({**(kept or {}), **configs})


def _check_lags(configs: Mapping[str, str | None]) -> None:
    least, most = (
        TOPIC_CONFIGS[name].parse(configs.get(name) or TOPIC_CONFIGS[name].default or "")
        for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
    )
    if least > most:
        raise ConfigError(
            "min.compaction.lag.ms",
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )
