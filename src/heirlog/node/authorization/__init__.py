"""What a client must be allowed for each API, and what it is told where it is not: between the router and the handlers.

Without an authorizer nothing here is imported, and requests go to their handlers at once. With one, `rules.py` says
for each API on each kind of listener which operations it asks for, and names the guard that asks: it takes out of the
request what the client may not touch, has the handler answer the rest, and puts the refusals into that answer. So
handlers know nothing of authorization; only Fetch, whose sessions outlive a request, looks itself (`Context.refuses`).
"""
