"""The client against the program: cut connections, sign-ins, pages and changes."""

from __future__ import annotations

import asyncio
import json
from typing import Literal

import pytest
from conftest import Demo, random_name
from proxies import Proxy

from rolecall import AsyncClient, ChangesExpired, Client, ConnectionLost, Forbidden, Invalid, NotFound, PreconditionFailed, Unauthenticated, etag


def test_a_create_has_one_effect_if_the_connection_is_cut_after_the_commit(demo: Demo, owner: Client) -> None:
    with Proxy(demo.address) as proxy:
        for n in range(5):
            client = Client(proxy.address, demo.tenant)
            client._cookies = owner._cookies
            name = random_name("Once")
            proxy.swallow_response_to(b"POST /roles")
            role = client.create_role({"name": name})
            found = list(owner.iter_roles(q=name))
            assert [r["id"] for r in found] == [role["id"]] and proxy.swallowed == n + 1


def test_the_same_with_asyncio(demo: Demo, owner: Client) -> None:
    name = random_name("Once")

    async def create() -> str:
        async with AsyncClient(proxy.address, demo.tenant) as client:
            client._cookies = owner._cookies
            return (await client.create_role({"name": name}))["id"]

    with Proxy(demo.address) as proxy:
        proxy.swallow_response_to(b"POST /roles")
        assert [r["id"] for r in owner.iter_roles(q=name)] == [] and [asyncio.run(create())] == [r["id"] for r in owner.iter_roles(q=name)]
        assert proxy.swallowed == 1


def test_a_change_without_a_key_is_not_sent_twice(demo: Demo, owner: Client) -> None:
    user = owner.create_user({"email": f"{random_name('user')}@demo.example", "name": "A Person"})
    with Proxy(demo.address) as proxy:
        client = Client(proxy.address, demo.tenant)
        client._cookies = owner._cookies
        proxy.swallow_response_to(b"POST /users/")
        with pytest.raises(ConnectionLost):
            client.suspend_user(user["id"])
        proxy.swallow_response_to(b"GET /users/")
        assert client.get_user(user["id"])["status"] == "suspended"
        assert proxy.swallowed == 2


def test_users_from_beginning_to_end(owner: Client) -> None:
    user = owner.create_user({"email": f"{random_name('user')}@demo.example", "name": "A Person", "department": "Sales"}, idempotency_key=(key := random_name("key")))
    assert owner.create_user({"email": user["email"], "name": "A Person", "department": "Sales"}, idempotency_key=key)["id"] == user["id"]
    changed = owner.update_user(user["id"], {"name": "Renamed Person", "department": None}, if_match=etag(user))
    assert changed["name"] == "Renamed Person" and changed["department"] is None and etag(changed) not in (None, etag(user))
    with pytest.raises(PreconditionFailed):
        owner.update_user(user["id"], {"name": "Too late"}, if_match=etag(user))
    owner.delete_user(user["id"], if_match=etag(changed))
    with pytest.raises(NotFound):
        owner.get_user(user["id"])


def test_lists_read_every_page(owner: Client) -> None:
    emails = [u["email"] for u in owner.iter_users(department="Sales", sort="email", limit=7)]
    assert len(emails) >= 20 and emails == sorted(set(emails))
    assert owner.list_users(department="Sales", count=True)["total"] == len(emails)


def test_field_errors_have_pointers(owner: Client) -> None:
    with pytest.raises(Invalid) as caught:
        owner.create_user({"email": "ada", "name": "A"})
    assert [(e.pointer, e.code) for e in caught.value.errors] == [("/email", "email"), ("/name", "length")]


@pytest.mark.parametrize("transport", ["cookie", "bearer"])
def test_sessions(demo: Demo, transport: Literal["cookie", "bearer"]) -> None:
    with demo.client() as client:
        client.login({"email": demo.email, "password": demo.password, "transport": transport})
        assert (client.token is not None) == (transport == "bearer")
        before = client.get_session()
        assert client.refresh()["session"] and before["session"] is not None
        assert client.confirm({"password": demo.password})["confirmedAt"] is not None
        client.logout()
        with pytest.raises(Unauthenticated):
            client.get_session()
        with pytest.raises(Unauthenticated) as caught:
            client.login({"email": demo.email, "password": "not the password"})
        assert caught.value.code == "wrong-credentials"


def test_api_tokens(demo: Demo, owner: Client) -> None:
    account, token = demo.program_token(owner, "users.name:read")
    with demo.client(token=token) as program:
        assert program.get_session()["principal"]["id"] == account
        assert "email" not in program.list_users(limit=1)["items"][0]
        with pytest.raises(Forbidden):
            program.list_roles()


def test_the_changes_are_followed(demo: Demo, owner: Client) -> None:
    cursor = owner.changes_now()
    user = owner.create_user({"email": f"{random_name('user')}@demo.example", "name": "A Person"})
    owner.update_user(user["id"], {"name": "Renamed Person"})
    seen = []
    for page in owner.follow_changes(cursor, limit=1):
        seen += [(i["type"], i["data"].get("after", {}).get("name")) for i in page["items"] if i["subject"] == f"user/{user['id']}"]
        if len(seen) == 2:
            break
    assert seen == [("user.created", "A Person"), ("user.updated", "Renamed Person")]

    async def follow() -> str:
        async with AsyncClient(demo.address, demo.tenant) as client:
            await client.login({"email": demo.email, "password": demo.password})
            at = await client.changes_now(type="user.deleted")
            owner.delete_user(user["id"])
            async for page in client.follow_changes(at, type="user.deleted"):
                if page["items"]:
                    return page["items"][0]["subject"]
            raise AssertionError

    assert asyncio.run(follow()) == f"user/{user['id']}"


def test_a_cursor_of_other_permissions_has_expired(demo: Demo, owner: Client) -> None:
    account, token = demo.program_token(owner, "changes:read", "users:read")
    with demo.client(token=token) as program:
        cursor = program.changes_now()
        role = owner.list_service_account_roles(account)["items"][0]["role"]["id"]
        owner.update_role(role, {"permissions": ["changes:read"]})
        with pytest.raises(ChangesExpired) as caught:
            next(program.follow_changes(cursor))
        assert caught.value.code == "changes-expired"


def test_the_changes_of_all_tenants(demo: Demo, owner: Client) -> None:
    key = json.loads(demo.command("operator-key", "create", random_name("Follower"), "--scope", "changes", "--json"))["key"]
    with Client(demo.address, token=key) as operator:
        cursor = operator.changes_now(all_tenants=True, type="role.created")
        role = owner.create_role({"name": random_name("Role")})
        page = next(p for p in operator.follow_changes(cursor, all_tenants=True, type="role.created") if p["items"])
        assert page["items"][0]["subject"] == f"role/{role['id']}" and page["items"][0]["data"]["tenant"] == demo.tenant

