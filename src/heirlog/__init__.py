"""heirlog: a Kafka-wire-compatible replicated log with eligible leader replicas (KIP-966)."""

from heirlog.version import __version__ as __version__
