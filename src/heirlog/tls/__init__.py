"""TLS of the standard library for servers and clients: contexts made from settings and stores.

`server` and `blocking` use it. It opens no sockets.
"""
