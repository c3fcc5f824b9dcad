"""heirlog: a Kafka-wire-compatible replicated log with the whole of KIP-966."""
