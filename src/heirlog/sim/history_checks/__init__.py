"""What clients saw, and whether it is allowed: pure functions over a recorded `heirlog.sim.history.History`.

The simulator and drills on real processes use the same functions. `verdict.findings` runs all of them.

    records.py    lost-write            acknowledged with acks=all, below the highest offset read, and never read
                  unseen                acknowledged with acks=all, and not read by a reader of everything in the end
                  duplicate             a value that may be in the log once is there at two offsets
                  inconsistent-offsets  one offset, two values
                  stray                 acknowledged in one partition, read in another
    polls.py      int-poll-skip         one poll left out offsets between two of its records
                  ext-poll-skip         a poll left out offsets after the poll before it, or the beginning of a lineage
                  nonmonotonic-poll     a reader got an offset again, or a lower one, without a seek
                  high-watermark-regression    ListOffsets(latest) went back
    sends.py      nonmonotonic-send     a producer's later batch got a lower offset
                  two-leaders           two brokers acknowledged in one leader epoch
                  few-copies            fewer than min ISR replicas had what was committed
    transactions.py  aborted-read, lost-transaction, torn-transaction, zombie, copied-once
    recovered.py  discarded-record      a recovery gave up a record that a replica which had answered had
    losses.py     what an election on a lossy basis excuses

A lossy-basis election starts a new *lineage* of its partition at the winner's log end. A record that was acknowledged
before, at or above that offset, is lost by that election and not by a defect; its offset is assigned again. The leader
epoch of its batch shows to which lineage a record belongs.

Sources: Jepsen's Kafka workload (the names and what they mean), KIP-966 (min ISR, lossy elections), KIP-320.
Floor 7, a part of the simulator; imports only `heirlog.sim.history`.
"""
