"""heirlog: a Kafka-wire-compatible replicated log with eligible leader replicas (KIP-966)."""
