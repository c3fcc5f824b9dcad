"""What is wrong in a schema such as 'id BIGINT, price DOUBLE', in the words of the file that has it.

Spark's own error is about the text that heirlog has written around the schema, and often about that text's first word.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.types import StructType

TYPES = (
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE"),
    *("DECIMAL", "NUMERIC", "STRING", "VARCHAR", "CHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    *("ARRAY", "MAP", "STRUCT", "VARIANT"),
)
_LINE = re.compile(r"\(line (\d+), pos \d+\)")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")


def mistake(schema: str, error: PySparkException) -> str:
    """error: what Spark says of the text around the schema; used where the schema alone is right."""
    try:
        StructType.fromDDL(schema.rstrip().rstrip(","))
    except AnalysisException as own:
        error = own
    first = str(error).strip().partition("\n")[0]
    line = _LINE.search(first)
    where = f"line {line[1]}: " if line is not None and line[1] != "1" else ""
    if error.getCondition() == "UNSUPPORTED_DATATYPE":
        name = (error.getMessageParameters() or {}).get("typeName", "").strip('"')
        similar = get_close_matches(name.upper(), TYPES, 1)
        return f"{where}Spark has no type {name}" + (f"; did you mean {similar[0]}?" if similar else "")
    return where + _SQLSTATE.sub("", _LINE.sub("", first)).strip()
