"""The wire: messages, record batches, metadata records, error codes, ids and epochs as types.

Floor 0: imports nothing of heirlog but `heirlog.env`; every other package may import it. `messages` and `records`
are generated: `_generated` is written by `tools/codegen` and never edited by hand.
"""
