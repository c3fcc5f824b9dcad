"""One module per API key: its header says the behaviour and what each version added.

A handler is `handle(node, request, context)` and returns the response, a `Pending`, or `CLOSE`. It reads the request,
asks `broker`, `controller` or the image, and shapes the answer; no rule lives here. The router's table says which
handlers a listener serves and imports a module at its first request.
"""
