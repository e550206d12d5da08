"""The rules of the memory, by a clock that the tests set."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rolecall._memory import Credential, Memory, Principal


class World:
    """A memory with its clock. The time begins at 1,000 seconds. Unless the feed is cut, it has no
    further changes whenever an entry is needed."""

    def __init__(self, capacity: int = 10) -> None:
        self.time = 1000.0
        self.is_cut = False
        self.memory = Memory(capacity, lambda: self.time, lambda: self.time)

    def add(self, key: str, id: str = "ada", *, kind: str = "user", session: object = None, expires: str | None = None, began: float | None = None, tenant: str = "acme", permissions: int = 0, departments: int = 0) -> None:
        scoped = [{"permissions": ["shop/a:b"] * permissions, "reach": {"departments": ["Sales"] * departments}}]
        current: dict[str, Any] = {"principal": {"type": kind, "id": id, "name": id}, "permissionsExpireAt": expires, "session": session}
        current |= {"permissions": ["shop/a:b"] * permissions, "scopedPermissions": scoped}
        self.memory.add(key.encode(), Principal(cast(Any, current)), self.time if began is None else began, tenant)

    def has(self, key: str) -> bool:
        if not self.is_cut:
            self.memory.confirm(self.time)
        return self.memory.get(key.encode()) is not None

    def change(self, kind: str, subject: str = "user", id: str | None = "ada", tenant: str | None = None) -> None:
        self.memory.apply([cast(Any, {"type": kind, "data": {"tenant": tenant, "subject": {"type": subject, "id": id}}})])


def at(second: int) -> str:
    return f"1970-01-01T00:{second // 60:02}:{second % 60:02}.000000Z"


def test_without_a_feed_no_entry_is_used() -> None:
    w = World()
    w.is_cut = True
    w.add("a")
    assert not w.has("a")
    w.memory.confirm(999.201)
    assert w.has("a")


def test_an_entry_that_is_newer_than_the_feed_is_not_used() -> None:
    w = World()
    w.is_cut = True
    w.memory.confirm(999.99)
    w.time = 1000.95  # Ada was suspended at 1000, and the node that answers now is behind
    w.add("a")
    assert not w.has("a")
    w.change("user.suspended")
    w.memory.confirm(1000.96)
    w.time = 1001.7
    assert not w.has("a")


def test_with_a_feed_an_entry_is_read_again_after_ten_seconds() -> None:
    w = World()
    w.is_cut = True
    w.add("a")
    for second in range(1, 10):
        w.time = 1000.0 + second
        w.memory.confirm(w.time - 0.799)
        assert w.has("a")
    w.time = 1010
    w.memory.confirm(w.time)
    assert not w.has("a") and len(w.memory) == 0


def test_a_feed_that_was_cut_is_not_trusted() -> None:
    w = World()
    w.is_cut = True
    w.add("a")
    w.time = 1005
    w.memory.confirm(1004.199)
    assert not w.has("a")
    w.memory.confirm(1004.201)
    assert w.has("a")
    w.memory.confirm(1000)  # a response that comes late
    assert w.has("a")


@pytest.mark.parametrize(("expires", "session"), [
    (at(1005), None), (at(1005), {"expiresAt": at(2000), "idleExpiresAt": at(2000)}),
    (None, {"expiresAt": at(1005), "idleExpiresAt": at(2000)}), (at(2000), {"expiresAt": at(2000), "idleExpiresAt": at(1005)}),
    (None, {"expiresAt": at(2000), "idleExpiresAt": at(2000), "tokenExpiresAt": at(1005)}),
])  # fmt: skip
def test_an_entry_expires_with_the_session_or_an_assignment(expires: str | None, session: object) -> None:
    w = World()
    w.add("a", expires=expires, session=session)
    w.time = 1004.9
    w.memory.confirm(w.time)
    assert w.has("a")
    w.time = 1005
    assert not w.has("a")


@pytest.mark.parametrize(("kind", "subject", "id", "left"), [
    ("user.suspended", "user", "ada", ["c"]), ("session.ended", "user", "ada", ["c"]), ("role.unassigned", "user", "ada", ["c"]),
    ("token.revoked", "service_account", "robot", ["a", "b"]), ("something.new", "user", "ada", ["c"]), ("role.updated", "role", "r", []),
    ("role.deleted", "role", "r", []), ("tenant.updated", "tenant", None, []), ("something.new", "something", "x", []), ("something.new", "user", None, []),
    ("request.refused", "user", "ada", ["a", "b", "c"]), ("session.sign_in_failed", "tenant", None, ["a", "b", "c"]),
    ("webhook.updated", "webhook", "w", ["a", "b", "c"]), ("user.suspended", "user", "grace", ["a", "b", "c"]),
])  # fmt: skip
def test_changes_remove_what_they_affect(kind: str, subject: str, id: str | None, left: list[str]) -> None:
    w = World()
    w.add("a")
    w.add("b")
    w.add("c", "robot", kind="service_account")
    w.change(kind, subject, id)
    assert [key for key in "abc" if w.has(key)] == left


def test_a_change_of_a_tenant_removes_its_principals_only() -> None:
    w = World()
    w.add("a")
    w.add("b", "bob", tenant="globex")
    w.change("role.updated", "role", "r", tenant="globex")
    assert [key for key in "ab" if w.has(key)] == ["a"]
    w.add("b", "bob", tenant="globex")
    assert not w.has("b")
    w.time += 1
    w.add("b", "bob", tenant="globex")
    assert w.has("b") and Credential("a", "").hash("acme") != Credential("a", "").hash("globex")


def test_a_principal_that_changed_while_it_was_read_is_not_kept() -> None:
    for change in ("user.suspended", "role.updated"):
        w = World()
        began, w.time = 1000.0, 1002.0
        w.change(change, "user" if change.startswith("user") else "role")
        w.time = 1003
        w.add("a", began=began)
        assert not w.has("a")


def test_a_node_can_be_a_second_behind() -> None:
    w = World()
    w.change("user.suspended")
    w.time = 1000.9
    w.add("a")
    w.add("b", "grace")
    assert not w.has("a") and w.has("b")
    w.time = 1001
    w.add("a")
    assert w.has("a")
    w.memory.clear()
    w.add("a")
    assert not w.has("a")


def test_slow_responses_and_operators_are_not_kept() -> None:
    w = World()
    w.add("a", began=w.time - 10.1)
    w.add("b", kind="operator")
    w.add("c", kind="something")
    assert len(w.memory) == 0


def test_memory_is_bounded() -> None:
    w = World(capacity=3)
    for key in "abc":
        w.add(key, key)
    assert w.has("a")
    w.add("d", "d")
    assert [key for key in "abcd" if w.has(key)] == ["a", "c", "d"]
    w.memory.forget(b"a")
    for n in range(10_000):
        w.change("user.updated", id=f"user {n}")
        w.add(str(n), str(n))
    assert len(w.memory) <= 3 and len(w.memory._keys) <= 4 and len(w.memory._evicted) <= 3


def test_a_change_is_remembered_even_if_many_others_follow() -> None:
    w = World(capacity=3)
    w.change("user.suspended", id="ada")
    for n in range(100):
        w.change("user.updated", id=f"user {n}")
    w.add("a")
    assert not w.has("a")


SESSION, TOKEN = "session=" + "t" * 43, "Bearer rs_x"


@pytest.mark.parametrize(("authorization", "cookie", "sent"), [
    (None, None, None), ("", "", None), ("Basic x", "theme=dark", None), ("Bearer eyJ", "sessions=x; session_id=y", None),
    (None, f"a=b; {SESSION}; c=d", {"cookie": SESSION}), (None, f"__Host-{SESSION};{SESSION}", {"cookie": f"__Host-{SESSION}; {SESSION}"}),
    (TOKEN, "theme=dark", {"authorization": TOKEN}), ("bearer  rc_x", None, {"authorization": "Bearer rc_x"}),
    (TOKEN, SESSION, {"authorization": TOKEN, "cookie": SESSION}), ("Bearer eyJ", SESSION, {"cookie": SESSION}),
])  # fmt: skip
def test_only_credentials_of_rolecall_are_sent(authorization: str | None, cookie: str | None, sent: dict[str, str] | None) -> None:
    credential = Credential.of(authorization, cookie)
    assert (credential.headers() if credential else None) == sent


def test_credentials_have_different_hashes() -> None:
    found = [Credential("a", "b"), Credential("", "a\nb"), Credential("ab", ""), Credential("", "ab")]
    assert len({c.hash() for c in found}) == 4


def test_the_number_of_permissions_and_departments_is_bounded() -> None:
    w = World(capacity=3)
    w.add("a", permissions=100, departments=50)  # 250 of 300
    w.add("b", departments=50)
    assert w.has("a")
    w.add("c", departments=1)
    assert [w.has(key) for key in "abc"] == [True, False, True]
    w.add("a", permissions=100, departments=50)
    assert [w.has(key) for key in "ac"] == [True, True]
    w.add("d", departments=301)
    assert len(w.memory) == 0
    w.add("e", departments=300)
    w.memory.clear()
    w.add("e", departments=300)
    w.memory.confirm(w.time)
    assert len(w.memory) == 0  # it was cleared a moment ago
    w.time += 2
    w.add("e", departments=300)
    assert w.has("e")
