"""Find passwords, tokens and signatures in URLs: what is shown or recorded must not contain any.

The kind of a part decides, not its name: user information, queries and fragments are secret. Exceptions are user names
where they are no credentials, a few harmless parameters, and file names on object stores. A path is public, except for
parts that look like tokens.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "…"
_LONGEST: Final = 2000  # characters of an address; some expressions take time quadratic in them
_WEB: Final = r"(?:[hH][tT]{2}[pP][sS]?|[wW][eE][bB][dD][aA][vV][sS]?|[wW][sS]{1,2}|tcp|tls|ucx|inproc)"
# Schemes whose user is a name or a container, and schemes of files in archives and repositories, which have no user.
_USER_IS_PUBLIC: Final = (
    "(?:sftp|ssh|scp|ftps?|smb|hdfs|webhdfs|abfss?|wasbs?|adl|az|file|local|memory|zip|tar|libarchive|reference|hf"
    "|github|git)"
)
_HARMLESS: Final = (
    "(?:download|dl|raw|format|gid|sheet|page|rev|revision|ref|version|versionId|config|split|lang)"
    "=[A-Za-z0-9_.-]{0,40}"
)
_START: Final = r"(?:^|[^A-Za-z0-9+.-])"
_REST: Final = r"[^\s'\"<>`]"  # of an address in a text
# After `user:` a password may contain "/"; digits and "/" are a port and a path, and "::" chains URLs.
_PASSWORD: Final = r"(://)[^/:\[\s]*:(?!:|[0-9]+/)\S*(@)"
_USER: Final = rf"({_START}(?!{_USER_IS_PUBLIC}://)[A-Za-z][A-Za-z0-9+.-]*://)[^/\s]+(@)"
_NOT_HARMLESS: Final = rf"(?!{HIDDEN}|{_HARMLESS}(?:&{_HARMLESS})*(?:[#\s'\"<>`,:;)]|$))"
_QUERY: Final = rf"({_START}{_WEB}://[^\s?#'\"<>`]*\?){_NOT_HARMLESS}[^\s#'\"<>`]+()"
_ANY_QUERY: Final = rf"(://[^\s?#'\"<>`]*\?){_NOT_HARMLESS}[^\s#'\"<>`=]*=[^\s#'\"<>`]*()"
_COLUMN: Final = "(?:label|text|encoding)=[A-Za-z0-9_.%+-]{0,80}"  # of a file of labels
_NOT_COLUMNS: Final = rf"(?!{HIDDEN}|{_COLUMN}(?:&{_COLUMN})*(?:[\s'\"<>`,:;)]|$))"
_FRAGMENT: Final = rf"({_START}{_WEB}://[^\s#'\"<>`]*#){_NOT_COLUMNS}{_REST}+()"
_ANY_FRAGMENT: Final = rf"(://[^\s#'\"<>`]*#){_NOT_COLUMNS}[^\s'\"<>`=]*={_REST}*()"
_TOKEN: Final = (
    rf"(://{_REST}*?[/=:])(?:eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_.-]+|hf_[A-Za-z0-9]{{16,}}|gh[pousr]_[A-Za-z0-9]{{16,}}"
    r"|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16})()"
)
# A part of a web path with 24 letters and digits in a row, in both cases, and digits in three places.
_KEY: Final = (
    rf"({_START}{_WEB}://{_REST}*?/)(?=[A-Za-z0-9_-]*[a-z])(?=[A-Za-z0-9_-]*[A-Z])"
    r"(?=(?:[A-Za-z_-]*[0-9]+[A-Za-z_-]+){2}[0-9])(?=[A-Za-z0-9_-]*[A-Za-z0-9]{24})[A-Za-z0-9_-]+(?=[/\s'\"]|$)()"
)
_SECRET_PARTS: Final = (_PASSWORD, _USER, _QUERY, _ANY_QUERY, _FRAGMENT, _ANY_FRAGMENT, _TOKEN, _KEY)
_SECRETS: Final = tuple(map(re.compile, _SECRET_PARTS))
PUBLIC_PATTERN: Final = rf"^(?![\s\S]*(?:{'|'.join(_SECRET_PARTS)}))"
"""Regular expression of texts without secrets, for JSON schemas: Prefect's server then refuses a run before it records
the parameters."""


def without_password(address: str) -> str:
    """Return the URL unchanged if it contains no password, token or signature.

    URLs reach consoles, logs, the Prefect UI, its database and reports. Clients also accept credentials from the
    environment or their own files.

    Raises:
        ValueError: it contains one; the message does not repeat it.
    """
    if shown(address) == address:
        return address
    protocol = re.split(r"[^A-Za-z0-9+.-]", address.partition("://")[0])[-1]
    setting = f"""FSSPEC_{protocol.upper()}='{{"client_kwargs": {{"headers": {{"Authorization": "…"}}}}}}'"""
    if protocol in ("tcp", "tls", "ucx", "ws", "wss"):
        remedy = "Dask takes no password: use tls:// and set DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and …__KEY."
    elif protocol.lower() in ("http", "https"):
        remedy = (
            f"Set a token as {setting} in the environment. For a signed address, download the file and use its path."
        )
    else:
        remedy = (
            f"Set the password as FSSPEC_{protocol.upper()}_PASSWORD in the environment or in ~/.config/fsspec, or as "
            "the client's own setting, such as AWS_SECRET_ACCESS_KEY."
        )
    raise ValueError(
        f"an address {protocol}://… contains a password, token or signature, which would appear in logs and artifacts; "
        f"expected an address without one. {remedy}"
    )


def shown(text: str) -> str:
    """Replace passwords, tokens and signatures of URLs in a text by `HIDDEN`."""
    if "://" not in text:
        return text
    return "".join(_hidden(word) if "://" in word else word for word in re.split(r"(\s+)", text))


def _hidden(word: str) -> str:
    """Return a word with `HIDDEN` for its secrets; a word that is too long for an address is cut."""
    if len(word) > _LONGEST:  # perhaps a JSON list of addresses
        parts = re.split(r"([\"'<>`])", word)
        return "".join(map(shown, parts)) if len(parts) > 1 else f"{word.partition('://')[0][:_LONGEST]}://{HIDDEN}"
    for secret in _SECRETS:
        while (cleaner := secret.sub(rf"\1{HIDDEN}\2", word)) != word:  # a word may contain several
            word = cleaner
    return word
