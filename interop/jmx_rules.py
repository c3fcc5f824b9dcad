"""Rules for the JMX exporter that name Kafka's beans as the exporter's example rules do (those for 2.0 and for KRaft),
with which most installations and dashboards begin. Said in one sentence each:

    a rate, `...PerSec`        a counter: its count, without PerSec, as `..._total`
    a gauge                    its value
    a histogram or timer       its count as `..._count`, each percentile under the plain name with the label `quantile`
    raft-metrics and the like  each attribute; a state is a label

The name is `kafka_<domain>_<type>_<name>` in lower case; up to two further keys of a bean become labels. Since 1.0 the
exporter ends every counter with `_total` (hence `..._count_total`) and takes `_info` from the end of gauges.
"""

from __future__ import annotations

LABELS_MAX = 2


def rules() -> str:
    """The exporter's configuration, YAML."""
    found = [
        _rule(r"kafka.coordinator.(\w+)<type=(.+), name=(.+)><>Value", "kafka_coordinator_$1_$2_$3", "GAUGE"),
        _rule(
            "kafka.server<type=raft-metrics><>current-state: ([a-z]+)",
            "kafka_server_raft_metrics_current_state_info",
            "GAUGE",
            {"state": "$1"},
            value="1",
        ),
        _rule("kafka.server<type=([^,]+)><>([a-z-]+)-total", "kafka_server_$1_$2_total", "COUNTER"),
        _rule("kafka.server<type=([^,]+)><>([a-z-]+)", "kafka_server_$1_$2", "GAUGE"),
    ]
    most_labels_first = range(LABELS_MAX, -1, -1)
    for kind, name, attribute, suffix in (
        ("COUNTER", r"(.+)PerSec\w*", "Count", "_total"),
        ("GAUGE", "(.+)", "Value", ""),
        ("COUNTER", "(.+)", "Count", "_count"),
        ("GAUGE", "(.+)", r"(\d+)thPercentile", ""),
    ):
        for labels in most_labels_first:
            given = {f'"${4 + 2 * n}"': f"${5 + 2 * n}" for n in range(labels)}
            if "Percentile" in attribute:
                given["quantile"] = f"0.${4 + 2 * labels}"
            keys = ", (.+)=(.+)" * labels
            pattern = rf"kafka.(\w+)<type=(.+), name={name}{keys}><>{attribute}"
            found.append(_rule(pattern, f"kafka_$1_$2_$3{suffix}", kind, given))
    return "lowercaseOutputName: true\nrules:\n" + "".join(found)


def _rule(pattern: str, name: str, kind: str, labels: dict[str, str] | None = None, value: str = "") -> str:
    lines = [f"- pattern: '{pattern}'", f"  name: {name}", f"  type: {kind}"]
    if value:
        lines.append(f"  value: {value}")
    if labels:
        lines += ["  labels:", *(f'    {label}: "{text}"' for label, text in labels.items())]
    return "\n".join(lines) + "\n"
