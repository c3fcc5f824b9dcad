"""The newest schemas of a registry's subjects, the same for each run of a batch.

    a batch begins          its schemas are asked for and stored in the checkpoint, with its number
    it runs again           the stored ones are used, whatever has been registered since

Otherwise a row that was refused in the first run, and whose dead letter is visible, could be read in the second one; or
the other way round, and then the row would be in neither place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heirlog.spark.pipeline.files import read_json, write_json
from heirlog.spark.pipeline.spec import PipelineError, Values
from heirlog.spark.schemas.registry import RegistryError, Schema, UnknownSchema, client_of

FILE = "heirlog-schemas.json"


def newest(values: Values) -> dict[str, Schema]:
    """By the name of the kind. Raises PipelineError."""
    try:
        return {name: client_of(registry).latest(subject) for name, (registry, subject) in values.subjects.items()}
    except (RegistryError, UnknownSchema) as error:
        raise PipelineError(str(error)) from error


def kept_newest(values: Values, checkpoint: str, batch_id: int) -> Mapping[str, Schema]:
    """Raises PipelineError."""
    if not values.subjects:
        return {}
    file = Path(checkpoint) / FILE
    kept = read_json(file)
    if kept.get("batch") == batch_id and kept["schemas"].keys() == values.subjects.keys():
        return {name: Schema(text, tuple(references)) for name, (text, references) in kept["schemas"].items()}
    found = newest(values)
    write_json(file, {"batch": batch_id, "schemas": found})
    return found
