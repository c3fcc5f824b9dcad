"""Whether the brokers of a pipeline answer, and have its topics.

A run asks before it starts Spark: a cluster that does not run is the most frequent mistake, and inside a query it takes
a minute until Kafka's client gives up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heirlog.protocol.errors import KafkaError
from heirlog.spark import clients
from heirlog.spark.option_values import kafka_properties
from heirlog.spark.pipeline.spec import Pipeline, PipelineError, Problem, Topics, TopicSink

ANSWER_S = 10.0
"""For the brokers of a run to answer. They may have just been started."""
SAID_AFTER_S = 1.0


def topic_sinks(pipeline: Pipeline) -> list[tuple[str, TopicSink]]:
    sinks = (("sink", pipeline.sink), ("dead_letters", pipeline.dead_letters))
    return [(name, sink) for name, sink in sinks if isinstance(sink, TopicSink)]


def problems(pipeline: Pipeline, timeout_s: float) -> list[Problem]:
    """Brokers that do not answer, and topics that they do not have."""
    found = []
    for name, place, topics in _places(pipeline):
        bootstrap = place.bootstrap_servers
        try:
            there = _topics_at(place, timeout_s)
        except (OSError, KafkaError, ValueError) as error:
            found.append(Problem(pipeline.line_of(name, "bootstrap_servers"), f"{bootstrap}: {error}"))
            continue
        key = "topics" if name == "source" else "topic"
        found += [
            Problem(pipeline.line_of(name, key), f"topic {topic} does not exist on {bootstrap}: create it first")
            for topic in topics
            if topic not in there
        ]
    return found


def refuse_silent(pipeline: Pipeline, timeout_s: float, on_wait: Callable[[str], None] = lambda sentence: None) -> None:
    """Raises PipelineError if no broker of the source or of a sink answers.

    on_wait: gets a sentence once brokers have not answered for a second.
    """
    asked = set()
    for name, place, _ in _places(pipeline):
        bootstrap = place.bootstrap_servers
        if bootstrap in asked:
            continue
        asked.add(bootstrap)
        try:
            try:
                _topics_at(place, min(SAID_AFTER_S, timeout_s))
            except OSError:
                if timeout_s <= SAID_AFTER_S:
                    raise
                on_wait(f"no broker answers at {bootstrap}, of [{name}]: waiting for at most {timeout_s:g} s")
                _topics_at(place, timeout_s - SAID_AFTER_S)
        except OSError as error:
            raise PipelineError(f"{bootstrap}, of [{name}]: {error}") from error
        except (KafkaError, ValueError):
            # the query says what it is not allowed, or what is wrong in its options
            continue


def _places(pipeline: Pipeline) -> Iterator[tuple[str, Topics | TopicSink, tuple[str, ...]]]:
    """Name of the section, what it is, and its topics."""
    if isinstance(pipeline.source, Topics):
        yield "source", pipeline.source, pipeline.source.names
    for name, sink in topic_sinks(pipeline):
        yield name, sink, (sink.topic,)


def _topics_at(place: Topics | TopicSink, timeout_s: float) -> set[str]:
    with clients.connect(kafka_properties(place.spark_options), timeout_s) as client:
        return set(client.topic_names(internal=True))
