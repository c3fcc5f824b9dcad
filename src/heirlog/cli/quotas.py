"""`heirlog quotas describe|alter`: how much users, client ids and addresses may use.

    heirlog quotas alter user alice producer_byte_rate=1048576
    heirlog quotas alter --user alice --add-config producer_byte_rate=1048576
    heirlog quotas alter --user-defaults --client reports --add-config consumer_byte_rate=65536,request_percentage=50
    heirlog quotas alter --ip-defaults --add-config connection_creation_rate=20
    heirlog quotas alter --user alice --delete-config producer_byte_rate

The options are those of kafka-configs, which works as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from heirlog.cli.configs import pairs
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.option_groups import grouped
from heirlog.cli.render import Json, show_rows
from heirlog.metadata.client_quotas import CLIENT_ID, IP, IP_KEYS, USER, USER_AND_CLIENT_KEYS
from heirlog.protocol.errors import error_code

app = typer.Typer(help="Show and change quotas of users, client ids and addresses.", no_args_is_help=True)

EXACT, DEFAULT = 0, 1
DEFAULT_NAME = "<default>"
WORDS = ("user", "client", "ip")

Word = Annotated[str | None, typer.Argument(metavar="TYPE", help="user, client or ip.", show_default=False)]
WordName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The user, the client id or the address.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whose quotas: a user, a client id, both together, or an address; of each, one by name or the default."""

    user: Annotated[str | None, typer.Option("--user", help="A user, without User: before the name.")] = None
    user_defaults: Annotated[bool, typer.Option("--user-defaults", help="Every user that has no quota of its own.")] = (
        False
    )
    client: Annotated[str | None, typer.Option("--client", help="A client id.")] = None
    client_defaults: Annotated[
        bool, typer.Option("--client-defaults", help="Every client id that has no quota of its own.")
    ] = False
    ip: Annotated[str | None, typer.Option("--ip", help="An IP address.")] = None
    ip_defaults: Annotated[bool, typer.Option("--ip-defaults", help="Every address that has no quota of its own.")] = (
        False
    )

    def with_words(self, kind: str | None, name: str | None) -> QuotaEntity:
        """`user alice`, `client reports`, `ip 10.0.0.1` as the options say it. Raises UsageError."""
        if kind is None:
            return self
        if kind not in WORDS or name is None:
            raise UsageError(f"say whose quotas: {', '.join(WORDS)} and a name, or the options; not {kind}")
        if getattr(self, kind) is not None:
            raise UsageError(f"{kind} {name} and --{kind} exclude each other")
        in_words: dict[str, Any] = {kind: name}
        return replace(self, **in_words)

    def __iter__(self) -> Iterator[tuple[str, str | None]]:
        """Raises UsageError: a type by name and as the default."""
        for kind, option, name, is_default in (
            (USER, "--user", self.user, self.user_defaults),
            (CLIENT_ID, "--client", self.client, self.client_defaults),
            (IP, "--ip", self.ip, self.ip_defaults),
        ):
            if name is not None and is_default:
                raise UsageError(f"{option} and {option}-defaults exclude each other")
            if name is not None or is_default:
                yield kind, name


@app.command("describe")
@grouped
def describe(
    *,
    word: Word = None,
    name: WordName = None,
    named: QuotaEntity,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show quotas: all, or those of the user, the client id or the address that is named."""
    from heirlog.protocol.messages import DescribeClientQuotasRequest

    components = [
        DescribeClientQuotasRequest.ComponentData(
            entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name
        )
        for kind, name in named.with_words(word, name)
    ]
    with connected(bootstrap_server) as client:
        answer = client.send_to_any(DescribeClientQuotasRequest(components=components))
    _check("describe the quotas", answer)
    rows = []
    for entry in answer.entries or ():
        names = {
            part.entity_type: DEFAULT_NAME if part.entity_name is None else part.entity_name for part in entry.entity
        }
        for value in entry.values:
            rows.append(
                {
                    "user": names.get(USER),
                    "client_id": names.get(CLIENT_ID),
                    "ip": names.get(IP),
                    "quota": value.key,
                    "value": value.value,
                }
            )
    rows.sort(key=lambda row: [str(row[key] or "") for key in ("user", "client_id", "ip", "quota")])
    columns = {"user": "User", "client_id": "Client id", "ip": "IP", "quota": "Quota", "value": "Value"}
    show_rows(columns, rows, as_json)


@app.command("alter")
@grouped
def alter(
    *,
    word: Word = None,
    name: WordName = None,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUOTA=VALUE", help="The same as --add-config, one quota each.", show_default=False),
    ] = None,
    named: QuotaEntity,
    add_config: Annotated[
        str | None,
        typer.Option(metavar="QUOTA=VALUE,...", help=f"{', '.join(USER_AND_CLIENT_KEYS)}; {', '.join(IP_KEYS)}."),
    ] = None,
    delete_config: Annotated[str | None, typer.Option(metavar="QUOTA,...")] = None,
    validate_only: Annotated[bool, typer.Option(help="Check the change, and do not make it.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Set or remove quotas of one user, client id or address. Other quotas do not change."""
    from heirlog.client.admin import to_controller
    from heirlog.protocol.messages import AlterClientQuotasRequest

    if word is not None and "=" in word:
        # options say whose they are, so that the first arguments are quotas too
        values = [text for text in (word, name, *(values or ())) if text is not None]
        word = name = None
    entity = list(named.with_words(word, name))
    if not entity:
        raise UsageError("say whose quotas: user NAME, --user, --client, --ip, or one of the same with -defaults")
    given = [pair for text in (*(values or ()), add_config or "") for pair in pairs(text)]
    added = {quota: _number(quota, value) for quota, value in given}
    removed = [part.strip() for part in (delete_config or "").split(",") if part.strip()]
    if not added and not removed:
        raise UsageError("nothing to change: name quotas with QUOTA=VALUE, --add-config or --delete-config")
    unknown = sorted({*added, *removed} - {*USER_AND_CLIENT_KEYS, *IP_KEYS})
    if unknown:
        raise UsageError(f"{unknown[0]} is no quota; there are {', '.join((*USER_AND_CLIENT_KEYS, *IP_KEYS))}")
    for_these = IP_KEYS if any(kind == IP for kind, _ in entity) else USER_AND_CLIENT_KEYS
    foreign = sorted({*added, *removed} - {*for_these})
    if foreign:
        whose = "an address" if for_these is IP_KEYS else "a user or a client id"
        raise UsageError(f"{foreign[0]} is no quota of {whose}, which has {', '.join(for_these)}")
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                ops=[
                    *(AlterClientQuotasRequest.OpData(key=key, value=value) for key, value in added.items()),
                    *(AlterClientQuotasRequest.OpData(key=key, remove=True) for key in removed),
                ],
            )
        ],
        validate_only=validate_only,
    )
    with connected(bootstrap_server) as client:
        answer = client.run(to_controller(request, lambda got: [entry.error_code for entry in got.entries]))
    _check("alter the quotas", answer.entries[0])
    print("The change is valid." if validate_only else "The quotas are changed.")


def _number(name: str, value: str) -> float:
    """Raises UsageError."""
    try:
        return float(value)
    except ValueError:
        raise UsageError(
            f"{name}={value}: a quota is a number, in bytes, partitions or connections per second, or in "
            "percent of one thread's time"
        ) from None


def _check(what: str, result: Any) -> None:
    """Raises CommandError."""
    if result.error_code:
        code = error_code(result.error_code)
        reason = f"{code.name}, {result.error_message or ''}".rstrip(", .")
        raise CommandError(with_next_step(f"cannot {what}: {reason}", code))
