"""Values of topics that were written with a schema registry: `from_avro`, `from_json` and `from_protobuf`.

    functions.py   the three functions: Spark columns in, Spark columns out
    framing.py     the schema's id in front of a value, or in its headers
    registry.py    schemas by id from a registry, kept in memory
    avro.py        Avro's types as Arrow's; values of any writer's schema as rows of one reader's schema
    protobuf.py    the same for messages of Protobuf, whose descriptor the user has

Spark has `from_json`, and this one only removes the framing before it. Spark's `from_avro` and `from_protobuf` are in
JARs that PySpark does not contain, and neither asks a registry. Needs the extra `heirlog[schemas]`.
"""

from heirlog.spark.schemas.framing import BadValue
from heirlog.spark.schemas.functions import from_avro, from_json, from_protobuf
from heirlog.spark.schemas.registry import Registry, RegistryError, UnknownSchema

__all__ = ["BadValue", "Registry", "RegistryError", "UnknownSchema", "from_avro", "from_json", "from_protobuf"]
