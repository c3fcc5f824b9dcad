"""Floor 9: rehearsals of failures on a real cluster with a client that we did not write (librdkafka).

Each drill starts its own `Cluster`, plays a failure, judges what happened to acknowledged records, and can fail.
"""
