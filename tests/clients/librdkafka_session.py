"""A session of a stranger's client, run by the tests under more than one version of confluent-kafka.

    python librdkafka_session.py BOOTSTRAP codec TOPIC CODEC RECORDS
    python librdkafka_session.py BOOTSTRAP survive TOPIC RECORDS

Imports nothing of heirlog, so that it also runs in an environment that has only confluent-kafka. Prints one JSON object
per line: `{"acknowledged": n}` on the way (survive), and last a result with `problems`, empty if all went well.
"""

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition, libversion, version

QUIET_LIMIT_S = 60


def say(**values):
    print(json.dumps(values), flush=True)


def value_of(number):
    return b"%d:" % number + b"heirlog " * 20


def read_partitions(bootstrap, topic, partitions):
    """{partition: [(offset, key, value)]} of everything that is there now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    found = {partition: [] for partition in partitions}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    at_end, last_progress = set(), time.monotonic()
    while len(at_end) < len(found):
        if time.monotonic() - last_progress > QUIET_LIMIT_S:
            raise TimeoutError(f"only {sorted(at_end)} of {sorted(found)} were read to their end")
        for message in consumer.consume(1000, timeout=0.5):
            last_progress = time.monotonic()
            error = message.error()
            if error is None:
                found[message.partition()].append((message.offset(), message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
            else:
                raise RuntimeError(str(error))
    consumer.close()
    return found


def produce(producer, topic, count, delivered, on_progress=None):
    for number in range(count):
        while True:
            try:
                producer.produce(
                    topic, value_of(number), b"%d" % number, on_delivery=lambda e, m, n=number: delivered(e, m, n)
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 200 == 0:
            producer.poll(0)
            if on_progress is not None:
                on_progress(number)
    return producer.flush(90)


def codec(bootstrap, topic, name, count):
    problems, places = [], {}

    def delivered(error, message, number):
        if error is not None:
            problems.append(f"record {number}: {error}")
        else:
            places[(message.partition(), message.offset())] = number

    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": name, "linger.ms": 20, "acks": "all"})
    left = produce(producer, topic, count, delivered)
    if left or len(places) != count:
        problems.append(f"{len(places)} of {count} records were acknowledged, {left} are left")
    for partition, records in read_partitions(bootstrap, topic, [0]).items():
        for offset, key, value in records:
            number = places.pop((partition, offset), None)
            if number is None or (key, value) != (b"%d" % number, value_of(number)):
                problems.append(f"offset {offset} of partition {partition} holds something else")
    if places:
        problems.append(f"{len(places)} records were not read back")
    return problems


def survive(bootstrap, topic, count):
    problems, places = [], {}

    def delivered(error, message, number):
        if error is not None:
            problems.append(f"record {number}: {error}")
        elif message.offset() < 0:
            problems.append(f"record {number}: a delivery report without an offset")
        else:
            places[number] = (message.partition(), message.offset())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "queue.buffering.max.messages": 2000,
            "message.timeout.ms": 90_000,
        }
    )
    left = produce(producer, topic, count, delivered, lambda number: say(acknowledged=len(places)))
    if left or len(places) != count:
        problems.append(f"{len(places)} of {count} records were acknowledged, {left} are left")
    seen = 0
    for partition, records in read_partitions(bootstrap, topic, [0, 1, 2]).items():
        before = -1
        for offset, key, value in records:
            number = int(key)
            seen += 1
            if places.get(number) != (partition, offset):
                problems.append(f"record {number} is also at offset {offset} of partition {partition}")
            if value != value_of(number):
                problems.append(f"record {number} has other bytes")
            if number <= before:
                problems.append(f"record {number} stands behind {before} in partition {partition}")
            before = number
    if seen != count:
        problems.append(f"{seen} records were read, {count} were written")
    return problems


def main():
    bootstrap, action, topic, *rest = sys.argv[1:]
    if action == "codec":
        problems = codec(bootstrap, topic, rest[0], int(rest[1]))
    else:
        problems = survive(bootstrap, topic, int(rest[0]))
    say(client=version(), librdkafka=libversion()[0], problems=problems[:20], count=len(problems))


if __name__ == "__main__":
    main()
