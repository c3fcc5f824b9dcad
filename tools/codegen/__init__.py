"""Writes `heirlog/protocol/_generated` from the files in `specs`: `python tools/codegen`. No part of the package."""
