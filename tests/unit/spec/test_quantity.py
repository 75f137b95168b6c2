"""Kubernetes quantities: read exactly, refused clearly."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persia_infra.spec.quantity import check_quantity, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("100Gi", "107374182400"),
        ("1.5Gi", "1610612736"),
        ("1500m", "1.5"),
        ("100n", "0.0000001"),
        ("2k", "2000"),
        ("12e6", "12000000"),
        ("12E6", "12000000"),
        ("1E", "1000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("-3", "-3"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("1e-3", "0.001"),
    ],
)
def test_a_quantity_is_read_exactly(text: str, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


def test_a_number_is_a_quantity() -> None:
    assert parse_quantity(8) == 8


def test_many_digits_are_not_rounded() -> None:
    exact = Fraction("123456789012345678.000000001") * 2**60
    assert Fraction(parse_quantity("123456789012345678.000000001Ei")) == exact


@pytest.mark.parametrize(
    ("text", "intent"),
    [("100 Gi", "'100Gi'"), ("5GB", "'5G'"), ("5gib", "'5Gi'"), ("1K", "'1k'"), ("5g", "'5G'")],
)
def test_a_near_miss_is_refused_with_what_was_meant(text: str, intent: str) -> None:
    with pytest.raises(ValueError, match=rf"not a Kubernetes quantity.*Ki Mi Gi.*did you mean {intent}"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["", "Gi", "-", "1.5.2", "1e3Mi", "ten", "1 2", "1GiGi", "0x10", "NaN", "inf", "١"])
def test_what_is_no_quantity_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Kubernetes quantity: write a number"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["8Ei", "1e30", "-1e30", "9" * 30, "0.5n", "1e-10"])
def test_what_kubernetes_cannot_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"than Kubernetes can count|finer than a billionth"):
        check_quantity(text)


@pytest.mark.parametrize("text", ["7Ei", "1n", "0.000000001", "0.0000000000", "-3"])
def test_what_kubernetes_can_count_is_not(text: str) -> None:
    check_quantity(text)


def test_a_truth_value_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="True"):
        parse_quantity(True)


@pytest.mark.parametrize(
    ("value", "binary", "text"),
    [
        ("1610612736", True, "1536Mi"),
        ("1073741824", True, "1Gi"),
        ("1000", True, "1000"),
        ("1000", False, "1k"),
        ("1.5", False, "1500m"),
        ("0", True, "0"),
        ("0.000001", False, "1u"),
    ],
)
def test_a_quantity_is_written_in_the_shortest_exact_way(value: str, binary: bool, text: str) -> None:
    assert format_quantity(Decimal(value), binary=binary) == text


def test_what_is_too_fine_for_a_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="finer than a billionth"):
        format_quantity(Decimal("1e-10"))


@given(st.from_regex(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_what_is_taken_can_be_written_again(text: str) -> None:
    try:
        check_quantity(text)
    except ValueError:
        return
    value = parse_quantity(text)
    assert parse_quantity(format_quantity(value)) == value


@given(st.integers(min_value=-(10**24), max_value=10**24), st.booleans())
def test_writing_and_reading_gives_the_same(billionths: int, binary: bool) -> None:
    value = Decimal(billionths) / 10**9
    assert parse_quantity(format_quantity(value, binary=binary)) == value
