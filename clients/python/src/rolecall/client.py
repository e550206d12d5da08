"""The clients, for programs with and without asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import cast

import httpx

from ._core import FIRST_PAUSE, Call, Sender, AsyncSender, pause_after
from ._operations import AsyncOperations, Operations
from .models import Changes
from .problems import ConnectionLost, Gone, Problem

WAIT = 20  # seconds of a request for changes
SPARE = 5  # seconds from the end of the wait to the timeout of the HTTP client


class ChangesExpired(Gone):
    """Changes after the cursor cannot be read without a gap. Get a new cursor with changes_now, read
    the lists again, and follow from there."""


class Client(Operations):
    """Sends requests of one user or program to one tenant. It is safe for use in several threads.

    base is the address of the service. token is an API token (rc_…), the token of a session (rs_…) or
    an operator key (rco_…). Without a token, call login: the client keeps the session. In a server that
    answers a browser, cookie is the header Cookie of its request, set_cookies has the headers for the
    response to it, and headers can have its x-forwarded-for and user-agent. retries is how many times a
    call is repeated, and longest_pause how many seconds it waits before that at most: if the response says
    more, the call is not repeated. An httpx.Client that you pass does not store cookies any more, because
    this client does.

    Each method that creates something makes an idempotency key, and keeps it when it repeats the
    request. To repeat it yourself, pass your own idempotency_key.
    """

    def changes_now(self, *, type: str | None = None, all_tenants: bool = False) -> str:
        """Returns the cursor after all changes of this moment. Call it before you read the lists."""
        return cast(str, self.send(Call("GET", _feed(all_tenants), {"at": "now", "type": type}))["nextCursor"])

    def follow_changes(self, cursor: str | None, *, type: str | None = None, all_tenants: bool = False, limit: int | None = None) -> Iterator[Changes]:
        """Yields the changes after the cursor, page by page. When there are no more, it waits for the
        next ones, and yields an empty page from time to time. Store nextCursor in the same transaction
        as the effect of items. Without a cursor, it begins with the oldest changes.

        If the service is unreachable, busy or restarting, it tries again for ever. It raises
        ChangesExpired if there is a gap, and other problems.
        """
        failures = 0
        while True:
            call = _next_changes(cursor, type, all_tenants, limit, self.http.timeout)
            try:
                page = cast(Changes, Sender.send(self, call))
            except (Problem, ConnectionLost) as error:
                time.sleep(_pause(error, failures))
                failures += 1
                continue
            failures, cursor = 0, page["nextCursor"]
            yield page
            if call.query["wait"] == 0 and page["upToDate"]:
                time.sleep(FIRST_PAUSE)

    def close(self) -> None:
        """Closes the connections."""
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(AsyncOperations):
    """Like Client, for asyncio. It can be created before an event loop runs. Use it in one event loop only, because
    its connections belong to the loop of the first request."""

    async def changes_now(self, *, type: str | None = None, all_tenants: bool = False) -> str:
        """Like Client.changes_now."""
        return cast(str, (await self.send(Call("GET", _feed(all_tenants), {"at": "now", "type": type})))["nextCursor"])

    async def follow_changes(self, cursor: str | None, *, type: str | None = None, all_tenants: bool = False, limit: int | None = None) -> AsyncIterator[Changes]:
        """Like Client.follow_changes."""
        failures = 0
        while True:
            call = _next_changes(cursor, type, all_tenants, limit, self.http.timeout)
            try:
                page = cast(Changes, await AsyncSender.send(self, call))
            except (Problem, ConnectionLost) as error:
                await asyncio.sleep(_pause(error, failures))
                failures += 1
                continue
            failures, cursor = 0, page["nextCursor"]
            yield page
            if call.query["wait"] == 0 and page["upToDate"]:
                await asyncio.sleep(FIRST_PAUSE)

    async def close(self) -> None:
        """Closes the connections."""
        await self.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _feed(all_tenants: bool) -> str:
    return "/operator/changes" if all_tenants else "/changes"


def _next_changes(cursor: str | None, type: str | None, all_tenants: bool, limit: int | None, timeout: httpx.Timeout) -> Call:
    wait = WAIT if timeout.read is None else max(0, min(WAIT, int(timeout.read) - SPARE))
    return Call("GET", _feed(all_tenants), {"after": cursor, "type": type, "limit": limit, "wait": wait})


def _pause(error: Problem | ConnectionLost, failures: int) -> float:
    """Returns the seconds before the next request for changes. It raises errors that do not pass."""
    if isinstance(error, Gone):
        expired = ChangesExpired(error.status, {"code": error.code, "title": error.title, "detail": error.detail, "requestId": error.request_id})
        raise expired from error
    if isinstance(error, Problem) and error.status not in (429, 503):
        raise error
    return pause_after(failures, error.retry_after if isinstance(error, Problem) else 0)
