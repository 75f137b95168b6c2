"""Recognizes environment variables whose values look like secrets, which belong in a Secret, not in a description.

It looks at the end of the variable's name, and at passwords in URLs. Numbers, booleans and special tokens of
tokenizers are accepted for names that often hold them.
"""

import re
from typing import Final

_ENDINGS: Final = ("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "APIKEY", "SECRETKEY", "ACCESSKEY", "PRIVATEKEY")
"""Endings of the last word, which is often joined to the one before it, as in PGPASSWORD."""
_WORDS: Final = frozenset(
    ("PASS", "PWD", "TOKEN", "AUTHTOKEN", "SECRETS", "PASSWORDS", "CREDS", "CREDENTIAL", "CREDENTIALS")
)
_KEYS: Final = frozenset(
    ("ACCESS", "ACCOUNT", "API", "AUTH", "DEPLOY", "ENCRYPTION", "JWT", "MASTER", "PRIVATE", "SECRET", "SIGNING", "SSH")
)
"""Words before KEY that make it a secret, unlike, for example, the key of a table."""
_COUNTED: Final = frozenset(("PASS", "TOKEN"))
"""Words that are also common in training, where their value is a number."""
_TRAINING: Final = frozenset(
    ("BACKWARD", "BOS", "CLS", "END", "EOS", "FORWARD", "MASK", "PAD", "SEP", "SPECIAL", "START", "STOP", "UNK")
)
_FILES: Final = frozenset(("CREDS", "CREDENTIAL", "CREDENTIALS", "KEY", "PRIVATEKEY"))
"""Words whose variables often hold the path of a file instead of its content."""
_SHELL: Final = frozenset(("PWD", "OLDPWD"))

_SWITCH: Final = re.compile(r"true|false|yes|no|on|off|none|null", re.I)
_NUMBER: Final = re.compile(r"-?[0-9]{1,7}(\.[0-9]+)?")
_REFERENCE: Final = re.compile(r"\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)")
_PATH: Final = re.compile(r"(/[\w.-]+)+/?")
_PASSWORD_IN_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:(?P<password>[^/?#\s@]+)@")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable's value appears to be a secret, judging by the variable's name and the value itself.

    `$(NAME)` is not one: Kubernetes replaces it with the variable of that name, which can come from a Secret.
    """
    addresses = _PASSWORD_IN_ADDRESS.finditer(value)
    if any(not _REFERENCE.fullmatch(address["password"]) for address in addresses) or _PRIVATE_KEY.search(value):
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
