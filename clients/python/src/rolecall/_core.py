"""Sends requests: credentials, repetitions, problems and pages."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from http.cookiejar import DefaultCookiePolicy
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import quote as _quote

import httpx

from .problems import KINDS, ConnectionLost, Problem

SAFE_METHODS = ("GET", "HEAD")
FIRST_PAUSE = 0.5  # seconds before the first repetition
LONGEST_PAUSE = 30.0
LONGEST_ANSWER = 16 << 20
"""The maximum length of a response in bytes, except of exports."""


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

    def __init__(self, call: Call, retries: int, longest_pause: float) -> None:
        self._call, self._retries, self._longest_pause = call, retries, longest_pause
        self._failures = 0

    def pause(self, error: Problem | ConnectionLost) -> float:
        """Returns how many seconds to wait before the next attempt. It raises the error if the call
        must not be repeated."""
        retry_after = 0.0
        if isinstance(error, Problem):
            is_repeated, retry_after = error.status in (429, 503), error.retry_after
        else:
            is_repeated = self._call.method in SAFE_METHODS or self._call.key is not None
        if not is_repeated or self._failures >= self._retries or retry_after > self._longest_pause:
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

    def __init__(
        self, base: str, tenant: str, token: str | None, cookie: str | None, headers: Mapping[str, str] | None, retries: int, longest_pause: float = LONGEST_PAUSE
    ) -> None:
        self.base, self.tenant, self.retries, self._longest_pause = base.rstrip("/"), tenant, retries, longest_pause
        self.token = token
        """The token that requests send, or None for a session with a cookie."""
        self.set_cookies: Sequence[str] = ()
        """The headers Set-Cookie of the responses so far, the last one of each cookie of Rolecall. Pass them
        on to the browser."""
        self._further = {name.lower(): value for name, value in (headers or {}).items()}
        self._cookies: Sequence[str] = _cookies_of(cookie or "")  # replaced and never changed, because other threads read it
        self._keeping = threading.Lock()

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {"accept": "application/json, application/problem+json, */*;q=0.5", **self._further, **call.headers}
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
        elif cookies := self._cookies:
            headers["cookie"] = "; ".join(cookies)
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
        """Stores the cookies of the session and of the known device, or the token of a session. A
        response to a request with other credentials is ignored, because it is about another session."""
        if "authorization" in call.headers or "cookie" in call.headers:
            return
        sent = answer.request.headers
        token = body.get("token") if isinstance(body, dict) and call.path.startswith("/auths/") else None
        with self._keeping:
            if "authorization" not in sent:
                lines = answer.headers.get_list("set-cookie")
                self._cookies = _with_cookies(self._cookies, sent.get("cookie", ""), lines)
                self.set_cookies = _with_lines(self.set_cookies, lines)
            if isinstance(token, str) and token.startswith("rs_"):
                self.token = token
            elif call.path == "/auths/logout" and (self.token or "").startswith("rs_") and sent.get("authorization") == f"Bearer {self.token}":
                self.token = None

    def _read(self, call: Call, answer: httpx.Response, content: bytes) -> Any:
        """Returns the body of the response, or raises its problem."""
        kind = _kind_of(answer)
        body: Any = content
        if kind in ("application/json", "application/problem+json"):
            try:
                body = json.loads(content)
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


def _kind_of(answer: httpx.Response) -> str:
    """Returns the media type of the response."""
    return str(answer.headers.get("content-type", "")).partition(";")[0].strip()


class _Content:
    """The body of a response, while it is received. Only an export can be longer than LONGEST_ANSWER."""

    def __init__(self, call: Call, answer: httpx.Response) -> None:
        self._call, self._is_limited = call, answer.status_code != 200 or _kind_of(answer) != "text/csv"
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._length += len(part)
        if self._is_limited and self._length > LONGEST_ANSWER:
            raise ConnectionLost(f"{self._call.method} {self._call.path} got a response of more than {LONGEST_ANSWER >> 20} MiB")

    def content(self) -> bytes:
        return b"".join(self._parts)


def _name_of(pair: str) -> str:
    return pair.partition("=")[0].strip()


def _is_ours(name: str) -> bool:
    return name.removeprefix("__Host-") in ("session", "rolecall_device")


def _cookies_of(header: str) -> Sequence[str]:
    """Returns the cookies in the header Cookie of a browser that have the names of Rolecall's. Other programs
    of the host can have cookies with the same names. The service ignores theirs."""
    return tuple(pair.strip() for pair in header.split(";") if _is_ours(_name_of(pair)))


def _with_lines(kept: Sequence[str], lines: Sequence[str]) -> Sequence[str]:
    """Returns the headers Set-Cookie after a response with the lines."""
    lines = [line for line in lines if _is_ours(_name_of(line))]
    names = {_name_of(line) for line in lines}
    return (*(line for line in kept if _name_of(line) not in names), *lines)


def _with_cookies(kept: Sequence[str], sent: str, lines: list[str]) -> Sequence[str]:
    """Returns the cookies after a response with the headers Set-Cookie. A response clears only a cookie
    that its request had sent: another thread can have signed in since."""
    for line in lines:
        try:
            morsels = SimpleCookie(line).values()
        except CookieError:
            continue
        for cookie in morsels:
            if not _is_ours(cookie.key):
                continue
            is_cleared = not cookie.value or cookie["max-age"] == "0"
            kept = tuple(pair for pair in kept if _name_of(pair) != cookie.key or (is_cleared and pair not in sent.split("; ")))
            if not is_cleared:
                kept = (*kept, f"{cookie.key}={cookie.value}")
    return kept


def _keep_no_cookies(http: httpx.Client | httpx.AsyncClient) -> None:
    """Lets the HTTP client store and send no cookies, because Core does so itself."""
    http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))


class Sender(Core):
    """Sends requests, for programs without asyncio."""

    def __init__(
        self,
        base: str,
        tenant: str = "",
        *,
        token: str | None = None,
        cookie: str | None = None,
        headers: Mapping[str, str] | None = None,
        retries: int = 3,
        longest_pause: float = LONGEST_PAUSE,
        http: httpx.Client | None = None,
    ) -> None:
        super().__init__(base, tenant, token, cookie, headers, retries, longest_pause)
        self.http = http or httpx.Client(timeout=30)
        _keep_no_cookies(self.http)

    def send(self, call: Call) -> Any:
        """Sends the call, repeats it if that is safe, and returns the body of the response."""
        attempts = Attempts(call, self.retries, self._longest_pause)
        while True:
            try:
                try:
                    with self.http.stream(call.method, self.base + call.path, **self._arguments(call)) as answer:
                        body = _Content(call, answer)
                        for part in answer.iter_bytes():
                            body.add(part)
                except httpx.TransportError as error:
                    raise ConnectionLost(f"{call.method} {call.path} got no response: {error!r}") from error
                return self._read(call, answer, body.content())
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

    def __init__(
        self,
        base: str,
        tenant: str = "",
        *,
        token: str | None = None,
        cookie: str | None = None,
        headers: Mapping[str, str] | None = None,
        retries: int = 3,
        longest_pause: float = LONGEST_PAUSE,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(base, tenant, token, cookie, headers, retries, longest_pause)
        self.http = http or httpx.AsyncClient(timeout=30)
        _keep_no_cookies(self.http)

    async def send(self, call: Call) -> Any:
        """Sends the call, repeats it if that is safe, and returns the body of the response."""
        attempts = Attempts(call, self.retries, self._longest_pause)
        while True:
            try:
                try:
                    async with self.http.stream(call.method, self.base + call.path, **self._arguments(call)) as answer:
                        body = _Content(call, answer)
                        async for part in answer.aiter_bytes():
                            body.add(part)
                except httpx.TransportError as error:
                    raise ConnectionLost(f"{call.method} {call.path} got no response: {error!r}") from error
                return self._read(call, answer, body.content())
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
