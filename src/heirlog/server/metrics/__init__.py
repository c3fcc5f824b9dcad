"""What a node counts, for Prometheus: `GET /metrics` on `heirlog.metrics.listener`.

    listener    HTTP on the node's own loop: bounded, paced, and nothing of it loaded before the first request
    families    which numbers there are, under Kafka's names and labels (those of the JMX exporter's usual rules), and
                `heirlog_*` for what Kafka does not have
    exposition  families as prometheus-client writes them, in pieces

The brain (floors below 7) counts in plain values and does not know this package; everything is read on request.
"""
