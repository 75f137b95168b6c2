"""Tells values of variables that look like secrets, which belong into a Secret and not into a description.

Judged are the end of the variable's name, and passwords in addresses. Numbers, truth values and special words of
tokenizers are let through where such a name often carries them.
"""

import re
from typing import Final

_ENDINGS: Final = ("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "APIKEY", "SECRETKEY", "ACCESSKEY", "PRIVATEKEY")
"""Of the last word, which often runs into the one before it: PGPASSWORD."""
_WORDS: Final = frozenset(
    ("PASS", "PWD", "TOKEN", "AUTHTOKEN", "SECRETS", "PASSWORDS", "CREDS", "CREDENTIAL", "CREDENTIALS")
)
_KEYS: Final = frozenset(
    ("ACCESS", "ACCOUNT", "API", "AUTH", "DEPLOY", "ENCRYPTION", "JWT", "MASTER", "PRIVATE", "SECRET", "SIGNING", "SSH")
)
"""What a KEY is a secret after, in contrast to that of a table."""
_COUNTED: Final = frozenset(("PASS", "TOKEN"))
"""Words of training as well, which then carry a number."""
_TRAINING: Final = frozenset(
    ("BACKWARD", "BOS", "CLS", "END", "EOS", "FORWARD", "MASK", "PAD", "SEP", "SPECIAL", "START", "STOP", "UNK")
)
_FILES: Final = frozenset(("CREDS", "CREDENTIAL", "CREDENTIALS", "KEY", "PRIVATEKEY"))
"""Programs expect the name of a file in these as often as the content, which never looks like one."""
_SHELL: Final = frozenset(("PWD", "OLDPWD"))

_SWITCH: Final = re.compile(r"true|false|yes|no|on|off|none|null", re.I)
_NUMBER: Final = re.compile(r"-?[0-9]{1,7}(\.[0-9]+)?")
_REFERENCE: Final = re.compile(r"\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)")
_PATH: Final = re.compile(r"(/[\w.-]+)+/?")
_PASSWORD_IN_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:(?P<password>[^/?#\s@]+)@")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable's value is, by its name or its own look, a secret.

    `$(NAME)` is none: Kubernetes puts the variable of that name there, which can come from a Secret.
    """
    addresses = _PASSWORD_IN_ADDRESS.finditer(value)
    if any(not _REFERENCE.fullmatch(found["password"]) for found in addresses) or _PRIVATE_KEY.search(value):
        return True
    if not value or _REFERENCE.fullmatch(value) or _SWITCH.fullmatch(value) or name in _SHELL:
        return False
    *before, last = [word.rstrip("0123456789") for word in re.split(r"[_.-]+", _CAMEL.sub("_", name).upper())]
    if not last and before:
        *before, last = before
    previous = before[-1] if before else ""
    if last in _COUNTED and (_NUMBER.fullmatch(value) or previous in _TRAINING):
        return False
    if last in _FILES and _PATH.fullmatch(value):
        return False
    return last in _WORDS or last.endswith(_ENDINGS) or (last == "KEY" and previous in _KEYS)
