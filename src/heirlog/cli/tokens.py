"""`heirlog tokens create|renew|expire|list`: delegation tokens (KIP-48), by which programs log in for a user.

    heirlog tokens create --renewer-principal User:scheduler --command-config alice.properties
    heirlog tokens renew TOKEN_ID --command-config alice.properties

A token is named by its id here: its HMAC is a password, and arguments can be read by all users of a machine.
`kafka-delegation-tokens` works as well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.render import Json, NamesOnly, show_json, show_names, show_rows

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.client.delegation_tokens import IssuedToken

app = typer.Typer(help="Show and change delegation tokens, by which programs log in.", no_args_is_help=True)

TokenId = Annotated[str, typer.Argument(metavar="TOKEN_ID", help="As heirlog tokens list shows it.")]
COLUMNS: Final = {
    "token_id": "Token",
    "owner": "Owner",
    "requester": "Requester",
    "issued": "Issued",
    "expires": "Expires",
    "max": "At the latest",
    "renewers": "Renewers",
}


@app.command("create")
def create_token(
    owner_principal: Annotated[
        str | None, typer.Option(metavar="PRINCIPAL", help="User:name; default: who has logged in.")
    ] = None,
    renewer_principal: Annotated[
        list[str] | None, typer.Option(metavar="PRINCIPAL", help="User:name; may be repeated.")
    ] = None,
    max_life_time_period: Annotated[
        int, typer.Option(metavar="MS", help="Maximum with all renewals; -1: the cluster's.")
    ] = -1,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Create a token. Its HMAC is a password: it is printed here, and by no other heirlog command."""
    from base64 import b64encode

    from heirlog.client.delegation_tokens import create_delegation_token

    renewers = renewer_principal or []
    for option, principals in (("--owner-principal", [owner_principal or "User:x"]), ("--renewer-principal", renewers)):
        for principal in principals:
            if not principal.startswith("User:"):
                raise UsageError(f"{option} {principal} is not of the form User:name")
    with connected(bootstrap_server) as client:
        made = client.run(create_delegation_token(renewers, owner_principal, max_life_time_period))
    secret = b64encode(made.hmac).decode()
    if as_json:
        show_json({"token_id": made.id, "hmac": secret, **_row(made)})
        return
    print(f"Token {made.id} of {made.owner}, until {as_text(made.expires_ms)}; renewable until {as_text(made.max_ms)}.")
    print(f"HMAC: {secret}")
    print("A client logs in with SCRAM, the token as username, the HMAC as password, and tokenauth=true.")


@app.command("renew")
def renew_token(
    token_id: TokenId,
    renew_time_period: Annotated[
        int, typer.Option(metavar="MS", help="From now; -1: the cluster's delegation.token.expiry.time.ms.")
    ] = -1,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Let a token live longer, up to its maximum: for its owner and its renewers."""
    from heirlog.client.delegation_tokens import renew_delegation_token

    with connected(bootstrap_server) as client:
        ends_ms = client.run(renew_delegation_token(_found(client, token_id).hmac, renew_time_period))
    print(f"{token_id} ends at {as_text(ends_ms)}.")


@app.command("expire")
def expire_token(
    token_id: TokenId,
    expiry_time_period: Annotated[int, typer.Option(metavar="MS", help="From now; -1: at once.")] = -1,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """End a token, for its owner and its renewers. Connections that are open stay so until its former end."""
    from heirlog.client.delegation_tokens import expire_delegation_token

    with connected(bootstrap_server) as client:
        ends_ms = client.run(expire_delegation_token(_found(client, token_id).hmac, expiry_time_period))
    print(f"{token_id} is removed." if expiry_time_period < 0 else f"{token_id} ends at {as_text(ends_ms)}.")


@app.command("list")
def list_tokens(
    owner_principal: Annotated[
        list[str] | None,
        typer.Option(metavar="PRINCIPAL", help="Only tokens of this owner or renewer; may be repeated."),
    ] = None,
    names_only: NamesOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List the tokens that you may see, without their HMACs."""
    from heirlog.client.delegation_tokens import describe_delegation_tokens

    with connected(bootstrap_server) as client:
        found = client.run(describe_delegation_tokens(owner_principal))
    rows = [_row(token) for token in sorted(found, key=lambda token: (token.owner, token.issued_ms))]
    if names_only:
        show_names((row["token_id"] for row in rows), as_json)
        return
    if not as_json:
        rows = [{**row, "renewers": ", ".join(row["renewers"])} for row in rows]
    show_rows(COLUMNS, rows, as_json)


def _found(client: Client, token_id: str) -> IssuedToken:
    from heirlog.client.delegation_tokens import describe_delegation_tokens

    for token in client.run(describe_delegation_tokens()):
        if token.id == token_id:
            return token
    raise CommandError(f"{token_id} is no delegation token that you may see; heirlog tokens list shows those")


def _row(token: IssuedToken) -> dict[str, Any]:
    return {
        "token_id": token.id,
        "owner": token.owner,
        "requester": token.requester,
        "issued": as_text(token.issued_ms),
        "expires": as_text(token.expires_ms),
        "max": as_text(token.max_ms),
        "renewers": list(token.renewers),
    }


def as_text(time_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError):
        # a cluster may have such a delegation.token.max.lifetime.ms, and the HMAC of a new token is shown only once
        return "after the year 9999"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
