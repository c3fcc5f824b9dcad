"""Metadata, control and group records by name, and the tables of metadata and control records by type id."""

from heirlog.protocol._generated.records import *  # noqa: F403
