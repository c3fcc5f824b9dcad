"""Options that belong together, as one parameter of a command.

    @dataclass(frozen=True, slots=True)
    class Resources:
        topics: Annotated[list[str] | None, typer.Option("--topic")] = None
        cluster: Annotated[bool, typer.Option("--cluster")] = False

    @app.command("list")
    @grouped
    def list_acls(resources: Resources, as_json: Json = False) -> None: ...

Typer makes one option of each parameter. So it gets a function that has a parameter for each field, in the place of the
group and in the order of the fields: the help shows them as if the command had declared them itself.

A group has no default. A command with an option before a group takes keywords only (`*`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its parameters that are dataclasses.

    Raises ValueError if two fields or parameters have the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    options: list[Parameter] = []
    groups: dict[str, type[Any]] = {}
    for name, parameter in signature(command).parameters.items():
        kind = hints[name]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            groups[name] = kind
            options += _options(kind)
        else:
            options.append(Parameter(name, Parameter.KEYWORD_ONLY, default=parameter.default, annotation=kind))

    @wraps(command)
    def with_options(**given: Any) -> None:
        values = {
            name: kind(**{field.name: given.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        command(**values, **given)

    flat: Any = with_options
    flat.__signature__ = Signature(options)
    flat.__annotations__ = {option.name: option.annotation for option in options}
    return with_options


def _options(kind: type[Any]) -> Iterator[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        default = Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
