from __future__ import annotations

import random
import re

import pytest
from conftest import PASSWORD, ROOT, Demo

from rolecall import Client, can, covers

ROWS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (yes|no) \|$", (ROOT / "docs" / "permissions.md").read_text(), re.M)


def whole(*permissions: str) -> dict[str, object]:
    return {"permissions": list(permissions), "scopedPermissions": []}


def within(department: object, permission: object = "shop/a:b") -> dict[str, object]:
    return {"permissions": [], "scopedPermissions": [{"reach": {"departments": department}, "permissions": ["shop/z:z", permission]}]}


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 46


@pytest.mark.parametrize(("held", "asked", "covered"), ROWS)
def test_every_row_of_the_published_table(held: str, asked: str, covered: str) -> None:
    assert covers(held, asked) == (covered == "yes")
    assert can(whole("roles:read", held), asked) == (covered == "yes" or covers("roles:read", asked))


LONG = "a" * 64
MALFORMED: list[object] = [
    "", "*", "shop", "shop/", "shop/invoices", ":approve", "shop/:approve", "shop/invoices:", "a/b/c:d", "a:b:c", "a.b.c:d", "Shop/a:b",
    "shop/a:b ", " shop/a:b", "shop/a:b\n", "shop/ä:b", "shop/aä:b", "shop/a*:b", "**:*", LONG + "a:b", f"{LONG}/{LONG}.{LONG}:{LONG}",
    "shop/invoices.:approve", None, 7, True, [], ["shop/a:b"], {},
]  # fmt: skip


@pytest.mark.parametrize("value", MALFORMED, ids=repr)
def test_malformed_values_are_refused(value: object) -> None:
    for held, asked in (("*/*:*", value), ("*:*", value), (value, "shop/invoices:approve"), (value, value)):
        assert not covers(held, asked)
    assert not can(value, "shop/a:b")
    assert not can({"permissions": value, "scopedPermissions": value}, "shop/b:a", "Sales")
    assert not can({"permissions": [], "scopedPermissions": [value]}, "shop/a:b", "Sales")
    assert not can(within([value]), "shop/a:b", "Sales")
    assert not can(within(value), "shop/a:b", "Sales")


def test_departments() -> None:
    assert can(within(["Sales"]), "shop/a:b", "Sales")
    assert not can(within(["Sales"]), "shop/a:b")
    assert not can(within([""]), "shop/a:b", "")
    assert not can(within(["Sales"]), "shop/a:b", "sales")
    assert not can(within(["Sales"], "users:read"), "users:read", "Sales")
    assert can(whole("shop/*:*"), "shop/a:b", "Ops")


def test_can_agrees_with_the_service(demo: Demo, owner: Client) -> None:
    held = ["shop/invoices:*", "shop/orders.total:read", "*/carts:read", "store/*:read", "users:read"]
    _, everywhere = demo.user(owner, *held)
    _, limited = demo.user(owner, *held, departments=["Sales", "Ops"])
    chosen = random.Random(1)
    for email in (everywhere, limited):
        client = demo.client()
        client.login({"email": email, "password": PASSWORD})
        current = client.get_session()
        checks = []
        for _ in range(200):
            name = chosen.choice(["shop/", "store/", "other/"]) + chosen.choice(["invoices", "orders", "carts"]) + chosen.choice(["", ".total"])
            department = chosen.choice([None, "Sales", "Ops", "Board"])
            checks.append((f"{name}:{chosen.choice(['read', 'approve'])}", department))
        answers = client.check_all({"checks": [{"permission": p, "department": d} if d else {"permission": p} for p, d in checks]})["results"]
        assert len({a["allowed"] for a in answers}) == 2
        for (permission, department), answer in zip(checks, answers, strict=True):
            assert can(current, permission, department) == answer["allowed"], (permission, department)
