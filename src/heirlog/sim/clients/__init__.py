"""Simulated clients: numbered values in, what was acknowledged and read out.

They are processes like any other, on machines of their own, and communicate with brokers only through messages. The
product's client (`heirlog.client`) decides what is sent to which broker, what an answer means and what is retried;
`driver.py` runs its calls on virtual time. The results are recorded in one `History` (`heirlog.sim.history`; members of
a group have a `GroupBook`), which is checked at the end. The simulator's part is which values are written, how often,
and to which topics.

* A topic that was deleted and recreated under its name is another topic, so clients remember topics by id.
* A producer has one batch in flight per partition, so that a repeat is always the last batch (`PipelinedProducer`: 5).
* A plain producer gives up a batch whose outcome is unknown, so that a value is in the log at most once. An idempotent
  producer repeats it with its sequence number.
"""
