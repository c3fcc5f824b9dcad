"""Random sequences of requests, answered by heirlog and by Apache Kafka 4.2 and compared field by field.

    requests*.py   what a request that means something looks like, one function per API
    mutations.py   what makes it mean nothing, or something else: odd values, nulls, items twice
    world.py       what differs between nodes and has one name for all of them: ids of topics, members, producers
    shape.py       a request for one node; an answer in a form that can be compared
    wire.py        connections, and answers that come later
    deviations.py  the differences that docs/compatibility.md names, by family in *_deviations.py
    families.py    which requests are played together
    avoided.py     what no sequence sends
    share_group_episodes.py  what happens over several requests
    sequence.py    one sequence
    tidying.py     what ends it
    three_nodes.py starts them
    play.py        one sequence after another, and what is said of them

Three nodes play: heirlog, a node of Apache Kafka, and a second one of Apache Kafka as the control. A field in which the
two nodes of Apache Kafka differ says nothing and is not compared.
"""
