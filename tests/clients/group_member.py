"""A member of a group in a process of its own, so that a test can kill it: a stranger's consumer that tells its doings.

    python group_member.py BOOTSTRAP GROUP TOPIC [KEY=VALUE of librdkafka ...]

Prints one JSON object per line: {"assigned": [partition, ...]} and {"records": [[partition, offset], ...]}; commits
what it has printed. Ends with standard input, closing the consumer. Imports nothing of heirlog.

What cannot be committed because the group has gone on without this member is not printed: somebody reads it again.
"""

import json
import select
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException

GONE_ON = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.FENCED_MEMBER_EPOCH,
)
CLASSIC = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
COMMITS_MAX = 300


def say(**values):
    print(json.dumps(values), flush=True)


def commits(consumer):
    """Whether everything that was read is committed. While the coordinator moves this is asked again."""
    for _ in range(COMMITS_MAX):
        try:
            consumer.commit(asynchronous=False)
            return True
        except KafkaException as failed:
            if failed.args[0].code() in GONE_ON:
                return False
        time.sleep(0.1)
    return False


def main():
    bootstrap, group, topic, *more = sys.argv[1:]
    config = dict(pair.split("=", 1) for pair in more)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            # with the consumer protocol these are configurations of the group
            **({} if config.get("group.protocol") == "consumer" else CLASSIC),
            **config,
        }
    )
    has = set()

    def assigned(_, partitions):
        has.update(p.partition for p in partitions)
        say(assigned=sorted(has))

    def revoked(_, partitions):
        has.difference_update(p.partition for p in partitions)
        say(revoked=sorted(p.partition for p in partitions))

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    while not select.select([sys.stdin], [], [], 0)[0]:
        records = [message for message in consumer.consume(500, timeout=0.2) if message.error() is None]
        if records and commits(consumer):
            say(records=[[message.partition(), message.offset()] for message in records])
    consumer.close()


if __name__ == "__main__":
    main()
