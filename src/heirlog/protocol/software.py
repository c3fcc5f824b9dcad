"""The name and the version of this software, as an ApiVersions request has them (KIP-511)."""

SOFTWARE_NAME = "heirlog"
SOFTWARE_VERSION = "0.1.0"
