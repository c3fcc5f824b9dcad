"""Who somebody is, decided from bytes: names in certificates, passwords, proofs, tokens. No I/O, no randomness.

Servers, clients and the controller use it; it imports `protocol` only.
"""
