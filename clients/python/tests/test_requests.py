"""Credentials, repetitions, pages and problems, against prepared responses."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

import rolecall
from rolecall import AsyncClient, Client, ConnectionLost, Invalid, Problem

Answer = Callable[[httpx.Request], httpx.Response]


class Service:
    """A transport with prepared responses: a status, a status and the seconds of Retry-After, a body,
    or an error."""

    def __init__(self, *prepared: object) -> None:
        self.prepared = list(prepared)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        following = self.prepared.pop(0)
        if isinstance(following, Exception):
            raise following
        if isinstance(following, dict):
            return httpx.Response(200, json=following)
        if isinstance(following, httpx.Response):
            return following
        status, _, after = str(following).partition(" ")
        headers = {"content-type": "application/problem+json"} | ({"retry-after": after} if after else {})
        return httpx.Response(int(status), json={"code": f"c{status}"}, headers=headers) if int(status) >= 300 else httpx.Response(int(status), json={})

    def client(self, **options: Any) -> Client:
        return Client("http://rolecall.example/id/", "acme", http=httpx.Client(transport=httpx.MockTransport(self)), **{"token": "rc_x", **options})

    def run(self, name: str, *arguments: object, is_async: bool, **options: Any) -> Any:
        """Calls a method of one of the clients."""
        if not is_async:
            return getattr(self.client(), name)(*arguments, **options)

        async def call() -> Any:
            async with AsyncClient("http://rolecall.example/id/", "acme", token="rc_x", http=httpx.AsyncClient(transport=httpx.MockTransport(self))) as client:
                found = getattr(client, name)(*arguments, **options)
                return [item async for item in found] if hasattr(found, "__aiter__") else await found

        return asyncio.run(call())


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replaces the pauses between attempts, and returns them."""
    taken: list[float] = []

    async def pause(seconds: float) -> None:
        taken.append(seconds)

    monkeypatch.setattr(time, "sleep", taken.append)
    monkeypatch.setattr(asyncio, "sleep", pause)
    return taken


LOST = [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut")]


@pytest.mark.parametrize("failure", ["429", "503", *LOST], ids=repr)
def test_a_create_is_repeated_with_its_key(failure: object, is_async: bool, pauses: list[float]) -> None:
    service = Service(failure, failure, failure, {"id": "1"})
    assert service.run("create_user", {"email": "a@b.example", "name": "Ada"}, is_async=is_async) == {"id": "1"}
    keys = {r.headers["idempotency-key"] for r in service.requests}
    assert len(service.requests) == 4 and len(keys) == 1 and len(keys.pop()) > 30
    assert len({r.content for r in service.requests}) == 1
    for pause, least in zip(pauses, (0.5, 1, 2), strict=True):
        assert least <= pause <= least * 1.5


def test_each_call_has_its_own_key(is_async: bool) -> None:
    service = Service({"id": "1"}, {"id": "2"}, {"id": "3"})
    for _ in range(2):
        service.run("create_user", {"email": "a@b.example", "name": "Ada"}, is_async=is_async)
    service.run("create_user", {"email": "a@b.example", "name": "Ada"}, idempotency_key="mine", is_async=is_async)
    keys = [r.headers["idempotency-key"] for r in service.requests]
    assert len(set(keys)) == 3 and keys[2] == "mine"


@pytest.mark.parametrize("failure", LOST, ids=repr)
def test_a_change_without_a_key_is_not_repeated_after_a_lost_connection(failure: Exception, is_async: bool) -> None:
    for name, arguments in (("update_user", ("1", {"name": "Ada"})), ("delete_user", ("1",)), ("suspend_user", ("1",)), ("login", ({},)), ("assign_role", ("1", "2"))):
        service = Service(failure)
        with pytest.raises(ConnectionLost):
            service.run(name, *arguments, is_async=is_async)
        assert len(service.requests) == 1
    service = Service(failure, {"id": "1"})
    assert service.run("get_user", "1", is_async=is_async) == {"id": "1"}


@pytest.mark.parametrize("failure", ["429", "503"])
def test_a_refused_request_is_repeated(failure: str, is_async: bool) -> None:
    service = Service(failure, {"id": "1"})
    assert service.run("update_user", "1", {"name": "Ada"}, is_async=is_async) == {"id": "1"}


@pytest.mark.parametrize("status", [300, 304, 400, 401, 403, 404, 409, 410, 412, 413, 422, 500, 501, 502, 504])
def test_other_responses_are_not_repeated(status: int, is_async: bool, pauses: list[float]) -> None:
    service = Service(status)
    with pytest.raises(Problem) as caught:
        service.run("create_user", {"email": "a@b.example", "name": "Ada"}, is_async=is_async)
    assert caught.value.status == status and len(service.requests) == 1 and not pauses


def test_retry_after_is_respected(is_async: bool, pauses: list[float]) -> None:
    service = Service("503 7", {"id": "1"})
    service.run("get_user", "1", is_async=is_async)
    assert 7 <= pauses[0] <= 10.5
    with pytest.raises(rolecall.TooManyRequests) as caught:
        Service("429 31").run("get_user", "1", is_async=is_async)
    assert caught.value.retry_after == 31 and len(pauses) == 1


def test_repetitions_end(is_async: bool) -> None:
    service = Service(*["503"] * 10)
    with pytest.raises(rolecall.Unavailable):
        service.run("get_user", "1", is_async=is_async)
    assert len(service.requests) == 4


def test_pauses_have_jitter(pauses: list[float]) -> None:
    for _ in range(20):
        Service("503", {"id": "1"}).run("get_user", "1", is_async=False)
    assert len(set(pauses)) > 15


def test_lists_end_only_at_a_null_cursor(is_async: bool) -> None:
    pages: list[dict[str, Any]] = [
        {"items": [], "nextCursor": "a"}, {"items": [{"id": "1"}], "nextCursor": "b"}, {"items": [], "nextCursor": "c"},
        {"items": [], "nextCursor": "d"}, {"items": [{"id": "2"}, {"id": "3"}], "nextCursor": "e"}, {"items": [], "nextCursor": None},
    ]  # fmt: skip
    service = Service(*pages)
    users = list(service.run("iter_users", department="Sales", limit=2, is_async=is_async))
    assert [u["id"] for u in users] == ["1", "2", "3"]
    assert [r.url.params.get("cursor") for r in service.requests] == [None, "a", "b", "c", "d", "e"]
    assert {(r.url.params["department"], r.url.params["limit"]) for r in service.requests} == {("Sales", "2")}


def test_a_list_repeats_a_page(is_async: bool) -> None:
    service = Service({"items": [{"id": "1"}], "nextCursor": "a"}, "503", LOST[1], {"items": [{"id": "2"}], "nextCursor": None})
    assert [u["id"] for u in service.run("iter_users", is_async=is_async)] == ["1", "2"]
    assert [r.url.params.get("cursor") for r in service.requests] == [None, "a", "a", "a"]


def test_problems_have_pointers(is_async: bool) -> None:
    body = {
        "type": "/problems/validation", "code": "validation", "title": "Validation", "status": 422, "detail": "Invalid.", "instance": "/users",
        "requestId": "r", "errors": [{"pointer": "/email", "code": "email", "detail": "is wrong"}, {"header": "If-Match", "code": "format", "detail": "is wrong"}],
    }  # fmt: skip
    answer = httpx.Response(422, json=body, headers={"content-type": "application/problem+json; charset=utf-8"})
    with pytest.raises(Invalid) as caught:
        Service(answer).run("create_user", {"email": "ada", "name": "Ada"}, is_async=is_async)
    problem = caught.value
    assert (problem.code, problem.request_id, problem.errors[0].pointer, problem.errors[1].header) == ("validation", "r", "/email", "If-Match")
    assert str(problem) == "422 validation: Invalid.; /email is wrong; If-Match is wrong"


def test_a_response_of_a_proxy_is_a_problem(is_async: bool) -> None:
    for answer in (httpx.Response(502, text="<h1>Bad gateway</h1>"), httpx.Response(502, text="no JSON", headers={"content-type": "application/problem+json"})):
        with pytest.raises(Problem) as caught:
            Service(answer).run("get_session", is_async=is_async)
        assert (caught.value.status, caught.value.code) == (502, "unknown")


def test_a_sign_in_that_needs_a_second_factor(is_async: bool) -> None:
    body = {"code": "second-factor-required", "challenge": "c", "methods": ["totp", "passkey"], "publicKey": {"challenge": "x"}}
    with pytest.raises(rolecall.Unauthenticated) as caught:
        answer = httpx.Response(401, json=body, headers={"content-type": "application/problem+json"})
        Service(answer).run("login", {"email": "a@b.example", "password": "x"}, is_async=is_async)
    problem = caught.value
    assert (problem.code, problem.challenge, problem.methods, problem.public_key) == ("second-factor-required", "c", ["totp", "passkey"], {"challenge": "x"})


def test_paths_queries_and_headers(is_async: bool) -> None:
    service = Service({"id": "1"}, {"items": [], "nextCursor": None})
    service.run("update_user", "a/b?c", {"department": None}, if_match='"tag"', is_async=is_async)
    service.run("list_roles", count=True, q="x y", is_async=is_async)
    first, second = service.requests
    assert first.url.raw_path == b"/id/users/a%2Fb%3Fc" and json.loads(first.content) == {"department": None}
    assert first.headers["if-match"] == '"tag"' and first.headers["x-tenant-schema"] == "acme" and first.headers["authorization"] == "Bearer rc_x"
    assert "cookie" not in first.headers and dict(second.url.params) == {"count": "true", "q": "x y"}


def signed_in(*cookies: str) -> httpx.Response:
    return httpx.Response(200, json={}, headers=[("set-cookie", cookie) for cookie in cookies])


def test_the_session_cookie_is_kept_also_with_its_prefix() -> None:
    service = Service(
        signed_in("rolecall_device=; Path=/; Max-Age=0", "__Host-rolecall_device=known; Path=/; Secure", "__Host-session=token; Path=/; Secure; HttpOnly", "other=x"),
        {}, signed_in("__Host-session=; Path=/; Max-Age=0; Secure"), {},
    )  # fmt: skip
    client = service.client(token=None)
    client.login({"email": "a@b.example", "password": "x"})
    client.get_session()
    client.logout()
    client.get_session()
    known = "__Host-rolecall_device=known"
    assert [r.headers.get("cookie") for r in service.requests] == [None, f"{known}; __Host-session=token", f"{known}; __Host-session=token", known]


def test_a_client_for_a_browser_sends_and_returns_its_cookies() -> None:
    device, session = "__Host-rolecall_device=known; Path=/; Secure", "__Host-session=token; Path=/; Secure; HttpOnly"
    end = "__Host-session=; Path=/; Max-Age=0; Secure"
    service = Service(signed_in(device, session, "other=x"), signed_in(end))
    client = service.client(token=None, cookie="theme=dark; __Host-session=before;rolecall_device=d", headers={"X-Forwarded-For": "192.0.2.1", "User-Agent": "Browser/1"})
    client.login({"email": "a@b.example", "password": "x"})
    assert client.set_cookies == (device, session)
    client.logout()
    assert client.set_cookies == (device, end)
    sent = service.requests[0].headers
    assert (sent["cookie"], sent["x-forwarded-for"], sent["user-agent"]) == ("__Host-session=before; rolecall_device=d", "192.0.2.1", "Browser/1")


@pytest.mark.parametrize(("browser", "then"), [
    ("__Host-session=real; session=other", "session=other; __Host-session=new"),
    ("session=other; __Host-session=real", "session=other; __Host-session=new"),
    ("session=real; session=other", "session=real; session=other; __Host-session=new"),
    ("session=other; session=real", "session=other; session=real; __Host-session=new"),
    ("rolecall_device=other; rolecall_device=real", "rolecall_device=other; rolecall_device=real; __Host-session=new"),
])  # fmt: skip
def test_all_cookies_of_a_browser_with_the_names_are_sent(browser: str, then: str) -> None:
    """The application, or a sibling host, can have cookies with the names of Rolecall's."""
    service = Service(signed_in("__Host-session=new; Path=/; Secure"), {})
    client = service.client(token=None, cookie=browser)
    client.get_session()
    client.get_session()
    assert [r.headers["cookie"] for r in service.requests] == [browser, then]


def test_the_token_of_a_session_is_kept() -> None:
    service = Service({"token": "rs_1"}, {"token": "rs_2"}, {"token": "rc_secret"}, {}, {}, {})
    client = service.client(token=None)
    client.login({"email": "a@b.example", "password": "x", "transport": "bearer"})
    client.refresh()
    client.create_user_token("1", {"name": "x", "permissions": [], "expiresAt": "2999-01-01T00:00:00Z"})
    client.get_session()
    client.logout()
    client.get_session()
    assert [r.headers.get("authorization") for r in service.requests] == [None, "Bearer rs_1", "Bearer rs_2", "Bearer rs_2", "Bearer rs_2", None]


def test_a_sign_out_keeps_a_session_that_began_during_it() -> None:
    """A second thread signs in while the response to the sign-out of the first one is on its way."""
    for transport in ("cookie", "bearer"):
        sent: list[tuple[str, str | None]] = []

        def answer(request: httpx.Request) -> httpx.Response:
            sent.append((request.url.path, request.headers.get("cookie") or request.headers.get("authorization")))
            if request.url.path.endswith("/login"):
                number = sum(path.endswith("/login") for path, _ in sent)
                return httpx.Response(200, json={"token": f"rs_{number}"}) if transport == "bearer" else signed_in(f"session=s{number}; Path=/")
            if request.url.path.endswith("/logout"):
                client.login({"email": "a@b.example", "password": "x"})
                return signed_in("session=; Path=/; Max-Age=0") if transport == "cookie" else httpx.Response(200, json={})
            return httpx.Response(200, json={})

        client = Client("http://rolecall.example/id/", "acme", http=httpx.Client(transport=httpx.MockTransport(answer)))
        client.login({"email": "a@b.example", "password": "x"})
        client.logout()
        client.get_session()
        assert sent[-1][1] == ("session=s2" if transport == "cookie" else "Bearer rs_2")


def test_a_client_with_a_token_keeps_no_cookies_and_the_token() -> None:
    for token in ("rc_x", "rco_x", "rs_x"):
        service = Service(signed_in("session=s; Path=/", "rolecall_device=d; Path=/"), signed_in("session=s; Path=/"), {})
        client = service.client(token=token)
        client.get_session()
        client.logout()
        client.get_session()
        assert not client._cookies and "cookie" not in service.requests[2].headers
        assert service.requests[2].headers.get("authorization") == (None if token == "rs_x" else f"Bearer {token}")


def test_longest_pause(pauses: list[float]) -> None:
    with pytest.raises(rolecall.Unavailable):
        Service("503 2").client(longest_pause=1).get_session()
    assert not pauses


def test_a_follower_with_a_short_timeout_makes_pauses(is_async: bool, pauses: list[float]) -> None:
    page = {"items": [], "nextCursor": "c", "upToDate": True}
    service = Service(page, page, "410")
    with pytest.raises(rolecall.ChangesExpired):
        list(service.run("follow_changes", "c1", is_async=is_async))
    assert {r.url.params["wait"] for r in service.requests} == {"0"} and pauses == [0.5, 0.5]


def test_a_follower_repeats_at_the_same_cursor_and_ends_at_a_gap(is_async: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"items": [], "nextCursor": "c2", "upToDate": True}
    service = Service(page, *["503"] * 4, *[LOST[1]] * 4, "410")
    with pytest.raises(rolecall.ChangesExpired):
        list(service.run("follow_changes", "c1", is_async=is_async))
    assert [r.url.params["after"] for r in service.requests] == ["c1"] + ["c2"] * 9
    with pytest.raises(rolecall.Unauthenticated):
        list(Service("401").run("follow_changes", None, is_async=is_async))


def too_long(kind: str) -> httpx.Response:
    """Returns a response with one byte more than the limit, which is received in parts."""

    class Parts(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from (b" " * (1 << 20) for _ in range(16))
            yield b" "
            if kind != "text/csv":
                raise AssertionError("the rest was read")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in self:
                yield part

    return httpx.Response(200, headers={"content-type": kind}, stream=Parts())


def test_only_exports_can_be_long() -> None:
    for kind in ("application/json", "text/html"):
        service = Service(too_long(kind), too_long(kind))
        with pytest.raises(ConnectionLost, match="more than 16 MiB"):
            Client("http://service", "acme", http=httpx.Client(transport=httpx.MockTransport(service)), retries=0).get_session()

        async def read() -> None:
            async with httpx.AsyncClient(transport=httpx.MockTransport(service)) as http:
                await AsyncClient("http://service", "acme", http=http, retries=0).get_session()

        with pytest.raises(ConnectionLost, match="more than 16 MiB"):
            asyncio.run(read())
    service = Service(too_long("text/csv"))
    exported = Client("http://service", "acme", http=httpx.Client(transport=httpx.MockTransport(service))).export_users()
    assert len(exported) == (16 << 20) + 1
