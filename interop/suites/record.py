"""Runs the clients' suites against Apache Kafka 4.2 and writes what each test came to: `<client>.json`, here.

.venv/bin/python interop/suites/record.py [CLIENT ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from suites import golang, kafka_python, kafkajs, librdkafka, librdkafka_later, own_words, sarama, secured
from suites.nodes import kafka_node
from suites.verdict import HERE


def main() -> None:
    for client in (kafka_python, golang, sarama, librdkafka, librdkafka_later, kafkajs, own_words, secured):
        if sys.argv[1:] and client.CLIENT not in sys.argv[1:]:
            continue
        outcomes = secured.record() if client is secured else client.record(kafka_node)
        (HERE / f"{client.CLIENT}.json").write_text(json.dumps(outcomes, indent=1, sort_keys=True) + "\n")
        for suite, found in outcomes.items():
            print(f"{client.CLIENT} {suite}: {sum(outcome == 'passed' for outcome in found.values())} passed")


if __name__ == "__main__":
    main()
