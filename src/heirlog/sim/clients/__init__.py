"""Simulated clients: numbered values in, what was acknowledged and read out.

They are processes like any other, on machines of their own, and speak to brokers only through messages. What they send,
to whom, what an answer means and what is asked again is the product's client (`heirlog.client`): `driver.py` carries
out its calls on virtual time. What they see goes into one `History` (`heirlog.sim.history`; a group's members have a
`GroupBook`), which is judged at the end. The simulator's own are the wishes: which values, how often, in which topics.

* A topic that was deleted and recreated under its name is another one: what a client remembers, it remembers by id.
* A producer has one batch in flight per partition, so that a repeat is always the last batch (`PipelinedProducer`: 5).
* A plain producer gives up a batch of unknown fate, so that a value is in the log at most once. An idempotent one
  repeats it with its sequence.
"""
