"""Reads and writes Kubernetes quantities (`100Gi`, `1500m`, `12e6`) exactly.

Out of scope: rounding to what a field accepts, such as whole bytes or whole devices.
"""

import re
from decimal import Context, Decimal
from typing import Final

_BINARY: Final = {
    suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}
_DECIMAL: Final = {
    suffix: Decimal(10) ** power for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_EXACT: Final = Context(prec=400)
_FINEST: Final = Decimal("1e-9")
LARGEST: Final = Decimal(2**63 - 1)
"""The largest quantity that Kubernetes can represent."""
_ALLOWED: Final = (
    "write a number with at most one suffix: Ki Mi Gi Ti Pi Ei (powers of 1024), k M G T P E (powers of 1000), "
    "m u n (thousandths and less), or an exponent as in 12e6; no spaces"
)


def parse_quantity(text: str | int) -> Decimal:
    """Returns a quantity in its base unit: bytes, cores or devices.

    Raises:
        ValueError: The text is not a quantity; the message lists what is allowed and suggests a correction.
    """
    match = _FORM.fullmatch(str(text)) if not isinstance(text, bool) else None
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity: {_ALLOWED}{_hint(str(text))}")
    number = Decimal(match["number"])
    if suffix := match["suffix"]:
        return _EXACT.multiply(number, _BINARY.get(suffix) or _DECIMAL[suffix])
    return _EXACT.scaleb(number, int(match["exponent"] or 0))


def check_quantity(text: str) -> None:
    """Checks that a text is a quantity that Kubernetes can represent.

    Raises:
        ValueError: It is not; the message says why.
    """
    amount = _EXACT.normalize(parse_quantity(text))
    if abs(amount) > LARGEST:
        raise ValueError("is more than Kubernetes can count; write less than 8Ei")
    if amount != amount.quantize(_FINEST, context=_EXACT):
        raise ValueError("is finer than a billionth, which Kubernetes rounds up; write a whole number of n")


def format_quantity(value: Decimal, *, binary: bool = False) -> str:
    """Returns the shortest exact text of a quantity: `1536Mi` (binary), `1500m` or `2G` (decimal)."""
    if value == value.to_integral_value() and value != 0:
        for suffix, factor in reversed((_BINARY if binary else {s: _DECIMAL[s] for s in "kMGTPE"}).items()):
            if value % factor == 0:
                return f"{int(value / factor)}{suffix}"
    if value == value.to_integral_value():
        return str(int(value))
    for suffix in "mun":
        if (scaled := value / _DECIMAL[suffix]) == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    raise ValueError(f"{value} is finer than a billionth, which a Kubernetes quantity cannot represent")


def _hint(text: str) -> str:
    squeezed = re.sub(r"\s", "", text)
    for wrong, right in (
        ("KB", "k"),
        ("MB", "M"),
        ("GB", "G"),
        ("TB", "T"),
        ("KiB", "Ki"),
        ("MiB", "Mi"),
        ("GiB", "Gi"),
        ("TiB", "Ti"),
    ):
        if squeezed.lower().endswith(wrong.lower()) and _FORM.fullmatch(likely := squeezed[: -len(wrong)] + right):
            return f"; did you mean {likely!r}?"
    for likely in (squeezed, squeezed.replace("K", "k"), squeezed[:-1] + squeezed[-1:].upper()):
        if likely != text and _FORM.fullmatch(likely):
            return f"; did you mean {likely!r}?"
    return ""
