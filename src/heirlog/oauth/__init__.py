"""OAuth 2 over the network: the keys of an issuer for servers, tokens for clients. No socket of Kafka's protocol.

`server` and `blocking` use it. PyJWT, which checks signatures, is imported by `jwk_set` only.
"""
