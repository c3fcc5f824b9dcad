"""Simulated clients: numbered values in, what was acknowledged and read out.

They are processes like any other, on machines of their own, and speak to brokers only through messages. What they see
goes into one `History` (`heirlog.sim.history`; a group's members have a `GroupBook`), which is judged at the end.
What keeps them honest:

* A leader is believed only if its leader epoch is not older than one that this client has seen: a broker that lags
  behind in metadata must not send a reader back to a former leader.
* A topic that was deleted and made again under its name is another one: what a client remembers, it remembers by id.
* A producer has one batch in flight per partition, so that order is kept and a repeat is always the last batch.
* An idempotent producer repeats a batch of unknown fate, with its sequence; a plain one gives it up and goes on: either
  way a value stands in the log at most once.
* Back-off is bounded: `RETRY_MS`.
"""
