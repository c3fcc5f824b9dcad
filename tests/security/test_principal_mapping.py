"""`ssl.principal.mapping.rules`: the rules of KIP-371, and the ways in which a text is no rule."""

from __future__ import annotations

import pytest

from heirlog.security.distinguished_name import NAME_BYTES_MAX
from heirlog.security.principal_mapping import MappingError, PrincipalMapper

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^CN=q\\/x$/a\\/b/, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("CN=q/x", "a/b"),
        ("O=Org,C=US", "O=Org,C=US"),
    ],
)
def test_the_first_rule_that_matches_the_whole_subject_decides(subject: str, name: str) -> None:
    assert PrincipalMapper(RULES).name_of(subject) == name


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("", "CN=a", "CN=a"),
        (" , DEFAULT , ", "CN=a", "CN=a"),
        ("RULE:CN=(\\w+)/$1/", "CN=a,O=b", None),
        ("RULE:CN=(?<user>\\w+)/${user}/", "CN=bob", "bob"),
        ("RULE:CN=(\\w+)/$1$2 cost $9/", "CN=a", "a$2 cost $9"),
        ("RULE:CN=(\\w+)/\\$1/", "CN=a", "$1"),
        ("RULE:CN=(a)|CN=b/x$1/", "CN=b", "x"),
        ("RULE:CN=\\w+/n/", "CN=é", None),
        ("RULE:CN=(a)(b)/$12$9/", "CN=ab", "a2$9"),
        ("RULE:CN=[\\[a\\]]+/$0/", "CN=[a]", "CN=[a]"),
        ("RULE:(.*)/<$1>/", "CN=a", "<CN=a><>"),
        # the shortest that lets the whole match; then as long as it can be without that
        ("RULE:^CN=(.*?)/$1!/", "CN=ab", "!ab"),
        ("RULE:^CN=(.*?),(OU=.*?)(,O=.*)?$/$1@$2/", "CN=a,b,OU=c,O=d,OU=e", "a,b@OU=c"),
        ("RULE:(?i)^cn=(.*)$/$1/", "CN=Zoë", "Zoë"),
        ("RULE:(?i)^cn=ops$/ops/", "CN=op\u017f", None),
        ("RULE:^CN=(.*?)[\\s\\S]*$/$1/", "CN=a\u2028,O=b", None),
    ],
)
def test_patterns_and_replacements_are_javas(rules: str, subject: str, name: str | None) -> None:
    assert PrincipalMapper(rules).name_of(subject) == name


@pytest.mark.parametrize(
    "pattern", ["^CN=x*(,[^?]*)*$", "^CN=((x+)+,)+$", "^CN=(x|x,)*(x*)*$", "^(.*)(.*)(.*)(.*)(.*)!$"]
)
def test_no_subject_makes_a_pattern_take_long(pattern: str) -> None:
    """Java and Python would compute for years: nothing but the last character is wrong."""
    mapper = PrincipalMapper(f"RULE:{pattern}/$1/")
    for part in ("x", "x,", "\\,", ",x"):
        assert mapper.name_of("CN=" + part * ((NAME_BYTES_MAX - 4) // len(part)) + "?") is None


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("default", "does not begin with DEFAULT"),
        ("DEFAULTS", "follows a rule"),
        ("RULE:CN=a", "does not begin with"),
        ("RULE:CN=(a/b/", "not a regular expression"),
        ("RULE:a/b/X", "follows a rule"),
        ("RULE:a/b/ DEFAULT", "follows a rule"),
        ("RULE:\\p{Lu}+/b/", "in another way than Java"),
        ("RULE:\\C+/b/", "in another way than Java"),
        ("RULE:[a-z&&[^b]]/b/", "in another way than Java"),
        ("RULE:[a-c[x-z]]/b/", "in another way than Java"),
        ("RULE:(?U)CN=.*/b/", "in another way than Java"),
        ("RULE:(?P<user>.*)/b/", "in another way than Java"),
        ("RULE:CN=(?!admin).*/b/", "no look-around"),
        ("RULE:CN=(.)\\1/b/", "not a regular expression of RE2"),
        ("RULE:CN=.*+/b/", "not a regular expression of RE2"),
    ],
)
def test_what_is_no_rule_is_refused_with_a_sentence(rules: str, sentence: str) -> None:
    with pytest.raises(MappingError, match=sentence.replace("(", "\\(")):
        PrincipalMapper(rules)
