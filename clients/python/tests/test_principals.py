"""The permission check in memory against the program, while the feed is cut."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from conftest import PASSWORD, PATIENCE, Demo, later, until
from proxies import Proxy

from rolecall import AsyncPrincipals, Client, Credential, Invalid, Principals, RolecallError, Unauthenticated
from rolecall.principals import POLL

REVOCATIONS = int(os.environ.get("ROLECALL_TEST_REVOCATIONS", "50"))
# The seconds from the response to a revocation until it has an effect. This is not the speed of the machine: the memory
# answers only if the changes were read within the last second, however slow the machine is.
LIMIT = 1.0


@pytest.fixture(scope="module")
def feed_token(demo: Demo, owner: Client) -> str:
    return demo.program_token(owner, "changes:read")[1]


class Route(httpx.BaseTransport):
    """Sends requests for changes through a proxy, and all others directly."""

    def __init__(self, proxy: Proxy) -> None:
        self._inner, self._proxy = httpx.HTTPTransport(), httpx.URL(proxy.address)
        self.loads = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/changes":
            request.url = request.url.copy_with(port=self._proxy.port)
        else:
            self.loads += 1
        return self._inner.handle_request(request)


def sign_in(demo: Demo, email: str) -> tuple[Client, Credential]:
    client = demo.client()
    token = client.login({"email": email, "password": PASSWORD, "transport": "bearer"})["token"]
    credential = Credential.of(f"Bearer {token}", None)
    assert credential is not None
    return client, credential


def until_in_memory(principals: Principals, route: Route, credential: Credential) -> None:
    """Returns when an entry that is older than a second comes from the memory."""
    began, loads = time.monotonic(), route.loads

    def is_old() -> bool:
        nonlocal began, loads
        principals.get(credential)
        if route.loads != loads:
            began, loads = time.monotonic(), route.loads
        return time.monotonic() - began > 1.5

    until(is_old)


def test_the_memory_answers_and_a_change_is_seen(demo: Demo, owner: Client, feed_token: str) -> None:
    id, email = demo.user(owner, "shop/invoices:approve", departments=["Sales"])
    _, credential = sign_in(demo, email)
    with Proxy(demo.address) as proxy:
        route = Route(proxy)
        with Principals(demo.address, demo.tenant, feed_token=feed_token, transport=route) as principals:
            until_in_memory(principals, route, credential)
            principal = principals.get(credential)
            assert (principal.type, principal.id, principal.name) == ("user", id, "A Person")
            assert principal.can("shop/invoices:approve", "Sales") and not principal.can("shop/invoices:approve")

            def are_kept() -> bool:
                loads = route.loads
                for _ in range(1000):
                    principals.get(credential)
                return route.loads == loads

            until(are_kept)  # on a busy machine, the feed can be late, and an entry is then read again
            owner.suspend_user(id)
            assert waited(accepts(principals, credential)) < LIMIT
            with pytest.raises(Unauthenticated):
                principals.get(credential)


def waited(is_allowed: Callable[[], bool]) -> float:
    """Returns after how many seconds the last allowed request began. A refused request can take longer."""
    began = now = last = time.monotonic()
    while time.monotonic() < began + PATIENCE:
        now = time.monotonic()
        if not is_allowed():
            return last - began
        last = now
        threading.Event().wait(0.005)
    raise AssertionError("the revocation has no effect")


def accepts(principals: Principals, credential: Credential) -> Callable[[], bool]:
    """Returns a function that reports whether the credential is accepted."""

    def is_accepted() -> bool:
        try:
            principals.get(credential)
        except Unauthenticated:
            return False
        return True

    return is_accepted


class Saboteur(threading.Thread):
    """Cuts, refuses and holds the connections of a proxy at random times."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(daemon=True)
        self._proxy, self.ends = proxy, threading.Event()

    def run(self) -> None:
        chosen = random.Random(7)
        while not self.ends.wait(chosen.uniform(0, 0.6)):
            kind = chosen.randrange(4)
            if kind < 2:
                self._proxy.cut()
                continue
            switch = self._proxy.refuse if kind == 2 else self._proxy.hold
            switch(True)
            self.ends.wait(chosen.uniform(0, 2))
            switch(False)


def revoke(demo: Demo, principals: Principals, number: int, seed: int) -> list[float]:
    """Revokes a session or a permission of a user the given number of times. It returns how long each
    was still accepted."""
    owner, chosen, times = demo.owner(), random.Random(seed), []
    id, email = demo.user(owner, "shop/invoices:approve")
    role = owner.list_user_roles(id)["items"][0]["role"]["id"]
    _, credential = sign_in(demo, email)

    def is_allowed() -> bool:
        return principals.get(credential).can("shop/invoices:approve")

    for n in range(number):
        if n % 50 == 49:
            owner.confirm({"password": demo.password})
        # Use the credential for a random time, so that entries of every age are revoked.
        end = time.monotonic() + chosen.choice([0.05, 0.5, 1.5, 2.5])
        while time.monotonic() < end:
            assert is_allowed()
            threading.Event().wait(0.01)
        if n % 2 == 0:
            owner.end_user_sessions(id)
            times.append(waited(accepts(principals, credential)))
            _, credential = sign_in(demo, email)
            continue
        owner.unassign_role(id, role)
        times.append(waited(is_allowed))
        owner.assign_role(id, role, {})
        until(is_allowed)
    return times


def test_revocations_are_seen_within_a_second_while_the_feed_is_cut(demo: Demo, feed_token: str) -> None:
    with Proxy(demo.address) as proxy, Principals(demo.address, demo.tenant, feed_token=feed_token, transport=Route(proxy)) as principals:
        saboteur = Saboteur(proxy)
        saboteur.start()
        with ThreadPoolExecutor(5) as users:
            parts = [users.submit(revoke, demo, principals, REVOCATIONS // 5, seed) for seed in range(5)]
            times = sorted(time for part in parts for time in part.result())
        saboteur.ends.set()
        saboteur.join()
    print(f"\n{len(times)} revocations were seen within {times[-1] * 1000:.0f} ms, half of them within {times[len(times) // 2] * 1000:.0f} ms")
    assert times[-1] < LIMIT


def test_without_a_feed_a_revocation_is_seen_at_once(demo: Demo, owner: Client) -> None:
    id, email = demo.user(owner, "shop/invoices:approve")
    _, credential = sign_in(demo, email)
    _, token = demo.program_token(owner, "users:read")
    for feed_token in (None, token):  # no token, and one that may not read the changes
        with Principals(demo.address, demo.tenant, feed_token=feed_token) as principals:
            principals.get(credential)
            owner.end_user_sessions(id)
            with pytest.raises(Unauthenticated):
                principals.get(credential)
        _, credential = sign_in(demo, email)


class Feed:
    """A transport with prepared responses to requests for changes, of which the last one is repeated."""

    def __init__(self, *prepared: object) -> None:
        self._prepared = list(prepared)
        self.requests = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path != "/changes":
            session: dict[str, Any] = {"principal": {"type": "user", "id": "ada", "name": "Ada"}, "permissions": [], "scopedPermissions": [], "permissionsExpireAt": None, "session": None}
            return httpx.Response(200, json=session)
        self.requests += 1
        following = self._prepared.pop(0) if len(self._prepared) > 1 else self._prepared[0]
        if isinstance(following, Exception):
            raise following
        if isinstance(following, int):
            return httpx.Response(following, json={"code": "unauthenticated", "detail": "The token is not valid."}, headers={"content-type": "application/problem+json"})
        return httpx.Response(200, json=following)


@pytest.mark.parametrize("tenant", ["", "NOSUCH", "a\r\nx", "\u00e9", "a" * 64])
def test_names_that_no_tenant_can_have(tenant: str) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise AssertionError("a request was sent")

    with pytest.raises(Unauthenticated):
        Principals("http://rolecall.example", tenant, transport=httpx.MockTransport(refuse)).get(Credential("Bearer rs_x", ""))
    with pytest.raises(Unauthenticated):
        asyncio.run(AsyncPrincipals("http://rolecall.example", tenant, transport=httpx.MockTransport(refuse)).get(Credential("Bearer rs_x", "")))


class Tenants(Feed):
    """A Feed of all tenants, which records the path and the tenant of each request. The key is not for initech."""

    def __init__(self) -> None:
        super().__init__(PAGE)
        self.sent: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        tenant = request.headers.get("x-tenant-schema", "")
        self.sent.append(f"{request.url.host}{request.url.path} {tenant}")
        if request.url.path == "/changes" and tenant == "initech":
            return httpx.Response(403, json={"code": "permission-denied", "detail": "No."}, headers={"content-type": "application/problem+json"})
        return httpx.Response(200, json=PAGE) if request.url.path == "/operator/changes" else super().__call__(request)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_one_feed_of_all_tenants(is_async: bool) -> None:
    feed, credential, end = Tenants(), Credential("Bearer rs_x", ""), time.monotonic() + PATIENCE
    options: Any = {"feed_token": "rco_x", "feed_url": "http://operators.example", "transport": httpx.MockTransport(feed)}

    async def use() -> None:
        async with AsyncPrincipals("http://rolecall.example", **options) as principals:
            acme, globex, initech = (principals.for_tenant(name) for name in ("acme", "globex", "initech"))
            while await acme.get(credential) is not await acme.get(credential) or await globex.get(credential) is not await globex.get(credential):
                assert time.monotonic() < end
                await asyncio.sleep(0.02)
            assert await acme.get(credential) is not await globex.get(credential)
            for _ in range(10):
                assert await initech.get(credential) is not await initech.get(credential)

    if is_async:
        asyncio.run(use())
    else:
        with Principals("http://rolecall.example", **options) as principals:
            acme, globex, initech = (principals.for_tenant(name) for name in ("acme", "globex", "initech"))
            until(lambda: acme.get(credential) is acme.get(credential) and globex.get(credential) is globex.get(credential))
            assert acme.get(credential) is not globex.get(credential)
            for _ in range(10):
                assert initech.get(credential) is not initech.get(credential)
    for tenant in ("acme", "globex", "initech"):
        assert feed.sent.count(f"operators.example/changes {tenant}") == 1
    assert "operators.example/operator/changes " in feed.sent and "operators.example/changes " not in feed.sent
    with Principals("http://rolecall.example", "acme", feed_token="rc_x") as one, pytest.raises(ValueError):
        one.for_tenant("globex")


def test_nothing_is_sent_without_calls() -> None:
    feed = Feed(PAGE)
    with Principals("http://rolecall.example", "acme", feed_token="rc_x", transport=httpx.MockTransport(feed)) as principals:
        until(lambda: principals.get(Credential("Bearer rs_x", "")) is principals.get(Credential("Bearer rs_x", "")))
        sent = feed.requests
        threading.Event().wait(10 * POLL)
        assert feed.requests <= sent + 2  # the last calls can cause a request that runs, and one more


PAGE = {"items": [], "nextCursor": "c", "upToDate": True}


@pytest.mark.parametrize("failure", [httpx.InvalidURL("odd"), {"items": []}, {"items": [{"type": "x"}], "nextCursor": "c"}], ids=repr)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_follower_goes_on_after_an_unexpected_error(failure: object, is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed(failure, failure, PAGE)
    answers_from_memory(feed, is_async)
    messages = [record.getMessage() for record in caplog.records if record.name == "rolecall"]
    assert len(messages) == 2 and "cannot be read" in messages[0] and "again" in messages[1], messages
    assert caplog.records[0].exc_info is not None


def test_a_refused_token_is_reported_once_also_after_a_lost_connection(caplog: pytest.LogCaptureFixture) -> None:
    feed = Feed(httpx.ConnectError("refused"), 401, httpx.ConnectError("refused"), 401, PAGE)
    answers_from_memory(feed, is_async=False)
    messages = [record.getMessage() for record in caplog.records if record.name == "rolecall"]
    assert len(messages) == 2 and "The token is not valid." in messages[0] and "again" in messages[1], messages


def answers_from_memory(feed: Feed, is_async: bool) -> None:
    """Calls get until an answer comes from memory."""
    credential = Credential("Bearer rs_x", "")
    end = time.monotonic() + PATIENCE

    async def use() -> None:
        async with AsyncPrincipals("http://rolecall.example", "acme", feed_token="rc_x", transport=httpx.MockTransport(feed)) as principals:
            while await principals.get(credential) is not await principals.get(credential):
                assert time.monotonic() < end
                await asyncio.sleep(0.02)

    if is_async:
        asyncio.run(use())
        return
    with Principals("http://rolecall.example", "acme", feed_token="rc_x", transport=httpx.MockTransport(feed)) as principals:
        until(lambda: principals.get(credential) is principals.get(credential))


def test_an_assignment_that_expires_ends_the_permission(demo: Demo, owner: Client, feed_token: str) -> None:
    id, email = demo.user(owner, "shop/invoices:approve")
    role = owner.list_user_roles(id)["items"][0]["role"]["id"]
    with Principals(demo.address, demo.tenant, feed_token=feed_token) as principals:
        for seconds in (2, 4, 8, 16, 32):  # on a slow machine, the assignment can expire before it is read
            with contextlib.suppress(Invalid):
                owner.assign_role(id, role, {"expiresAt": later(seconds / 86400)})
            _, credential = sign_in(demo, email)
            principal = principals.get(credential)
            if principal.can("shop/invoices:approve"):
                break
        assert principal.can("shop/invoices:approve")
        until(lambda: not principals.get(credential).can("shop/invoices:approve"))
    expired = principal.current["permissionsExpireAt"]
    assert expired is not None and later(0) >= expired


def test_cookies_and_api_tokens(demo: Demo, owner: Client) -> None:
    account, token = demo.program_token(owner, "shop/invoices:approve")
    with Principals(demo.address, demo.tenant) as principals:
        program = principals.get(Credential(f"Bearer {token}", ""))
        assert (program.type, program.id) == ("service_account", account) and program.can("shop/invoices:approve")
        cookie = Credential.of(None, "; ".join(("theme=dark", *owner._cookies)))
        assert cookie is not None and principals.get(cookie).current["user"]["email"] == demo.email


def test_an_unreachable_service_is_not_a_signed_out_user(demo: Demo) -> None:
    with Proxy(demo.address) as proxy, Principals(proxy.address, demo.tenant) as principals:
        proxy.refuse(True)
        with pytest.raises(RolecallError) as caught:
            principals.get(Credential("Bearer rs_x", ""))
        assert not isinstance(caught.value, Unauthenticated)


def test_asyncio(demo: Demo, owner: Client, feed_token: str) -> None:
    id, email = demo.user(owner, "shop/invoices:approve")
    client, credential = sign_in(demo, email)

    async def use() -> float:
        async with AsyncPrincipals(demo.address, demo.tenant, feed_token=feed_token) as principals:
            kept = 0
            end = time.monotonic() + PATIENCE
            principal = await principals.get(credential)
            while kept < 100:
                assert time.monotonic() < end
                before, principal = principal, await principals.get(credential)
                kept = kept + 1 if principal is before else 0
                await asyncio.sleep(0.01)
            assert principal.can("shop/invoices:approve")
            await asyncio.to_thread(client.logout)
            began = now = last = time.monotonic()
            while True:
                now = time.monotonic()
                try:
                    await principals.get(credential)
                except Unauthenticated:
                    return last - began
                last = now
                await asyncio.sleep(0.005)

    assert asyncio.run(use()) < LIMIT
