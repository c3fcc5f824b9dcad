"""Floor 9: rehearsals of failures on a real cluster with a foreign client (librdkafka).

Each drill starts its own `Cluster`, causes a failure, and checks what happened to acknowledged records. It can fail.
"""
