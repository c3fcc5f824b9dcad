"""The name and the version of this software, as an ApiVersions request has them (KIP-511)."""

from heirlog.version import __version__

SOFTWARE_NAME = "heirlog"
SOFTWARE_VERSION = __version__
