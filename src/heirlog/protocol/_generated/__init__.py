"""Written by `tools/codegen` from the specs beside it and never edited by hand; a test compares.

Only `heirlog.protocol` imports it: `messages`, `records` and `api` are the doors.
"""
