"""Sends requests: credentials, repetitions, problems and pages."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import quote as _quote

import httpx

from .problems import KINDS, ConnectionLost, Problem

SAFE_METHODS = ("GET", "HEAD")
FIRST_PAUSE = 0.5  # seconds before the first repetition
LONGEST_PAUSE = 30.0


def new_key() -> str:
    """Returns a new idempotency key."""
    return str(uuid.uuid4())


def quote(segment: str) -> str:
    """Returns the text as a segment of a path."""
    return _quote(segment, safe="")


class Body(dict[str, Any]):
    """The body of a response, with its ETag."""

    etag: str | None = None


def etag(body: Mapping[str, Any]) -> str | None:
    """Returns the ETag of an object that a method has returned, for if_match. It is None for items of
    lists."""
    return body.etag if isinstance(body, Body) else None


class Call(NamedTuple):
    """A request to send, once or more."""

    method: str
    path: str
    query: Mapping[str, Any] = {}
    body: object = None
    content: bytes | None = None
    content_type: str = "application/json"
    key: str | None = None
    if_match: str | None = None
    headers: Mapping[str, str] = {}


class Attempts:
    """Decides whether a call is repeated: after 429, 503, and a lost connection if a repetition has no
    second effect."""

    def __init__(self, call: Call, retries: int) -> None:
        self._call, self._retries = call, retries
        self._failures = 0

    def pause(self, error: Problem | ConnectionLost) -> float:
        """Returns how many seconds to wait before the next attempt. It raises the error if the call
        must not be repeated."""
        retry_after = 0.0
        if isinstance(error, Problem):
            is_repeated, retry_after = error.status in (429, 503), error.retry_after
        else:
            is_repeated = self._call.method in SAFE_METHODS or self._call.key is not None
        if not is_repeated or self._failures >= self._retries or retry_after > LONGEST_PAUSE:
            raise error
        pause = pause_after(self._failures, retry_after)
        self._failures += 1
        return pause


def pause_after(failures: int, retry_after: float) -> float:
    """Returns the seconds to wait after a failure that follows so many other failures: longer and
    longer, and a random part more."""
    pause = max(retry_after, min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(failures, 10))))
    return pause + random.uniform(0, pause / 2)


class Core:
    """What both senders share: the service, the tenant and the credential."""

    def __init__(self, base: str, tenant: str, token: str | None, retries: int) -> None:
        self.base, self.tenant, self.retries = base.rstrip("/"), tenant, retries
        self.token = token
        """The token that requests send, or None for a session with a cookie."""
        self._cookies: dict[str, str] = {}

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {"accept": "application/json, application/problem+json, */*;q=0.5", **call.headers}
        if self.tenant:
            headers["x-tenant-schema"] = self.tenant
        if call.key is not None:
            headers["idempotency-key"] = call.key
        if call.if_match is not None:
            headers["if-match"] = call.if_match
        if call.content is not None:
            headers["content-type"] = call.content_type
        if "authorization" in headers or "cookie" in headers:
            return headers
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        elif self._cookies:
            headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        return headers

    def _arguments(self, call: Call) -> dict[str, Any]:
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in call.query.items() if value is not None}
        arguments: dict[str, Any] = {"params": query, "headers": self._headers(call)}
        if call.content is not None:
            arguments["content"] = call.content
        elif call.body is not None:
            arguments["json"] = call.body
        return arguments

    def _keep_credentials(self, call: Call, answer: httpx.Response, body: object) -> None:
        """Stores the cookies of the session and of the known device, or the token of a session."""
        if "authorization" in call.headers or "cookie" in call.headers:
            return  # the credential of somebody else
        for line in answer.headers.get_list("set-cookie"):
            try:
                morsels = SimpleCookie(line).values()
            except CookieError:
                continue
            for cookie in morsels:
                name = cookie.key.removeprefix("__Host-")
                if cookie.value and cookie["max-age"] != "0" and name in ("session", "rolecall_device"):
                    self._cookies[cookie.key] = cookie.value
                elif name == "session":
                    self._cookies.pop(cookie.key, None)
        if call.path.startswith("/auths/"):
            token = body.get("token") if isinstance(body, dict) else None
            if isinstance(token, str) and token.startswith("rs_"):
                self.token = token
            elif call.path == "/auths/logout" and (self.token or "").startswith("rs_"):
                self.token = None

    def _read(self, call: Call, answer: httpx.Response) -> Any:
        """Returns the body of the response, or raises its problem."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip()
        body: Any = answer.content
        if kind in ("application/json", "application/problem+json"):
            try:
                body = answer.json()
            except ValueError:
                body = None
        if answer.status_code >= 300:
            text = answer.headers.get("retry-after", "")
            retry_after = float(text) if text.isascii() and text.isdigit() else 0.0
            is_problem = kind == "application/problem+json" and isinstance(body, dict)
            raise KINDS.get(answer.status_code, Problem)(answer.status_code, body if is_problem else {}, retry_after)
        self._keep_credentials(call, answer, body)
        if isinstance(body, dict):
            body = Body(body)
            body.etag = answer.headers.get("etag")
        return body


def no_cookies() -> CookieJar:
    """Returns a jar that stays empty, because Core stores the cookies itself."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


class Sender(Core):
    """Sends requests, for programs without asyncio."""

    def __init__(self, base: str, tenant: str = "", *, token: str | None = None, retries: int = 3, http: httpx.Client | None = None) -> None:
        super().__init__(base, tenant, token, retries)
        self.http = http or httpx.Client(timeout=30, cookies=no_cookies())

    def send(self, call: Call) -> Any:
        """Sends the call, repeats it if that is safe, and returns the body of the response."""
        attempts = Attempts(call, self.retries)
        while True:
            try:
                try:
                    answer = self.http.request(call.method, self.base + call.path, **self._arguments(call))
                except httpx.TransportError as error:
                    raise ConnectionLost(f"{call.method} {call.path} got no response: {error!r}") from error
                return self._read(call, answer)
            except (Problem, ConnectionLost) as error:
                pause = attempts.pause(error)
            time.sleep(pause)

    def _send_json(self, method: str, path: str, **options: Any) -> Any:
        return self.send(Call(method, path, **options))

    def _send_none(self, method: str, path: str, **options: Any) -> None:
        self.send(Call(method, path, **options))

    def _send_bytes(self, method: str, path: str, **options: Any) -> bytes:
        return bytes(self.send(Call(method, path, **options)))

    def _iterate(self, method: str, path: str, *, query: Mapping[str, Any]) -> Iterator[Any]:
        cursor: str | None = None
        while True:
            page = self.send(Call(method, path, query={**query, "cursor": cursor}))
            yield from page["items"]
            cursor = page["nextCursor"]
            if cursor is None:  # an empty page can still have a next page
                return


class AsyncSender(Core):
    """Sends requests, for asyncio."""

    def __init__(self, base: str, tenant: str = "", *, token: str | None = None, retries: int = 3, http: httpx.AsyncClient | None = None) -> None:
        super().__init__(base, tenant, token, retries)
        self.http = http or httpx.AsyncClient(timeout=30, cookies=no_cookies())

    async def send(self, call: Call) -> Any:
        """Sends the call, repeats it if that is safe, and returns the body of the response."""
        attempts = Attempts(call, self.retries)
        while True:
            try:
                try:
                    answer = await self.http.request(call.method, self.base + call.path, **self._arguments(call))
                except httpx.TransportError as error:
                    raise ConnectionLost(f"{call.method} {call.path} got no response: {error!r}") from error
                return self._read(call, answer)
            except (Problem, ConnectionLost) as error:
                pause = attempts.pause(error)
            await asyncio.sleep(pause)

    async def _send_json(self, method: str, path: str, **options: Any) -> Any:
        return await self.send(Call(method, path, **options))

    async def _send_none(self, method: str, path: str, **options: Any) -> None:
        await self.send(Call(method, path, **options))

    async def _send_bytes(self, method: str, path: str, **options: Any) -> bytes:
        return bytes(await self.send(Call(method, path, **options)))

    async def _iterate(self, method: str, path: str, *, query: Mapping[str, Any]) -> AsyncIterator[Any]:
        cursor: str | None = None
        while True:
            page = await self.send(Call(method, path, query={**query, "cursor": cursor}))
            for item in page["items"]:
                yield item
            cursor = page["nextCursor"]
            if cursor is None:  # an empty page can still have a next page
                return
