"""The permission check in memory."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import Any, cast

import httpx

from ._core import AsyncSender, Call, Sender, pause_after
from ._memory import Credential, Memory, Principal
from .models import Changes, CurrentSession
from .problems import ConnectionLost, Gone, Problem, RolecallError, Unauthenticated

POLL = 0.2
"""Seconds between two requests for changes. Entries are used while the last one without further changes
began less than a second ago. A request that waits for changes could not prove that in time."""
LOAD_TIMEOUT = 5.0
LONGEST_PAUSE = 1.0
"""Seconds for which the caller of get waits before it repeats a request."""
FEED_TIMEOUT = 1.0

_log = logging.getLogger("rolecall")


class Principals:
    """Returns the principals of requests to your application, for one tenant of Rolecall. Most answers
    come from memory. It is safe for use in several threads. It can be created before a process forks, but
    must be used only after that.

    feed_token is an API token of a service account with changes:read in the whole tenant. With it, a
    thread follows the changes of the tenant, and removes the principals that have changed. A revoked
    session, role or permission then has an effect within a second. Without a token, or while the changes
    cannot be read, each call is a request to Rolecall.
    """

    def __init__(self, base: str, tenant: str, *, feed_token: str | None = None, capacity: int = 10_000, transport: httpx.BaseTransport | None = None) -> None:
        self._memory = Memory(capacity)
        self._loads = Sender(base, tenant, retries=1, longest_pause=LONGEST_PAUSE, http=httpx.Client(timeout=LOAD_TIMEOUT, transport=transport))
        self._feed = Sender(base, tenant, token=feed_token, retries=0, http=httpx.Client(timeout=FEED_TIMEOUT, transport=transport)) if feed_token else None
        self._follower: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = threading.Event()

    def get(self, credential: Credential) -> Principal:
        """Returns the principal of the credential. It raises Unauthenticated if the session or token is
        not valid, and another RolecallError if Rolecall does not answer: refuse the request then with
        503, and do not treat the user as signed out."""
        if self._feed is not None and (self._follower is None or not self._follower.is_alive()):
            self._start()
        key = credential.hash()
        principal = self._memory.get(key)
        if principal is not None:
            return principal
        began = self._memory.now()
        try:
            current = self._loads.send(Call("GET", "/auths/session", headers=credential.headers()))
        except Unauthenticated:
            self._memory.forget(key)
            raise
        principal = Principal(cast(CurrentSession, current))
        self._memory.add(key, principal, began)
        return principal

    def close(self) -> None:
        """Stops the thread and closes the connections."""
        self._closed.set()
        if self._follower is not None:
            self._follower.join()
        for sender in (self._loads, self._feed):
            if sender is not None:
                sender.http.close()

    def __enter__(self) -> Principals:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        with self._starting:
            if not self._closed.is_set() and (self._follower is None or not self._follower.is_alive()):
                self._follower = threading.Thread(target=self._follow, name="rolecall-changes", daemon=True)
                self._follower.start()

    def _follow(self) -> None:
        assert self._feed is not None
        follower = _Follower(self._memory)
        while not self._closed.is_set():
            call, began = follower.next()
            try:
                pause = follower.read(self._feed.send(call), began)
            except Exception as error:  # the thread must go on after an unexpected error too
                pause = follower.failed(error)
            self._closed.wait(pause)


class AsyncPrincipals:
    """Like Principals, for asyncio. Create and use it in one event loop."""

    def __init__(self, base: str, tenant: str, *, feed_token: str | None = None, capacity: int = 10_000, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._memory = Memory(capacity)
        self._loads = AsyncSender(base, tenant, retries=1, longest_pause=LONGEST_PAUSE, http=httpx.AsyncClient(timeout=LOAD_TIMEOUT, transport=transport))
        self._feed = AsyncSender(base, tenant, token=feed_token, retries=0, http=httpx.AsyncClient(timeout=FEED_TIMEOUT, transport=transport)) if feed_token else None
        self._follower: asyncio.Task[None] | None = None
        self._is_closed = False

    async def get(self, credential: Credential) -> Principal:
        """Like Principals.get."""
        if self._feed is not None and not self._is_closed and (self._follower is None or self._follower.done()):
            self._follower = asyncio.create_task(self._follow(), name="rolecall-changes")
        key = credential.hash()
        principal = self._memory.get(key)
        if principal is not None:
            return principal
        began = self._memory.now()
        try:
            current = await self._loads.send(Call("GET", "/auths/session", headers=credential.headers()))
        except Unauthenticated:
            self._memory.forget(key)
            raise
        principal = Principal(cast(CurrentSession, current))
        self._memory.add(key, principal, began)
        return principal

    async def close(self) -> None:
        """Stops the task and closes the connections."""
        self._is_closed = True
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])
        for sender in (self._loads, self._feed):
            if sender is not None:
                await sender.http.aclose()

    async def __aenter__(self) -> AsyncPrincipals:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _follow(self) -> None:
        assert self._feed is not None
        follower = _Follower(self._memory)
        while True:
            call, began = follower.next()
            try:
                pause = follower.read(await self._feed.send(call), began)
            except Exception as error:  # the task must go on after an unexpected error too
                pause = follower.failed(error)
            await asyncio.sleep(pause)


class _Follower:
    """Keeps a memory up to date with the pages of the feed. Both classes above share it."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._cursor, self._failures = memory, "", 0
        self._is_reported = False

    def next(self) -> tuple[Call, float]:
        """Returns the next request for changes, and the time at which it begins."""
        query: Mapping[str, Any] = {"after": self._cursor, "limit": 200} if self._cursor else {"at": "now"}
        return Call("GET", "/changes", query), self._memory.now()

    def read(self, page: Changes, began: float) -> float:
        """Applies the response, and returns the seconds until the next request."""
        if not self._cursor:
            self._memory.clear()  # changes before the cursor are unknown
        self._memory.apply(page["items"])
        self._failures, self._cursor = 0, page["nextCursor"]
        if not page["upToDate"]:
            return 0
        self._memory.confirm(began)
        if self._is_reported:
            self._is_reported = False
            _log.warning("rolecall: the changes can be read again")
        return POLL

    def failed(self, error: Exception) -> float:
        """Returns the seconds until the next request after an error. It reports the first of several
        errors in a row, except lost connections."""
        if isinstance(error, Gone):
            self._cursor = ""
            return 0
        if isinstance(error, ConnectionLost):
            return POLL  # the feed must be back soon, and a node without it is not busy with it
        if not isinstance(error, RolecallError):
            self._cursor = ""  # the memory may have a part of the page only
        if not self._is_reported:
            self._is_reported = True
            cause = None if isinstance(error, RolecallError) else error
            _log.warning("rolecall: the changes cannot be read, so each permission is checked with Rolecall: %s", error, exc_info=cause)
        self._failures += 1
        return pause_after(self._failures - 1, error.retry_after if isinstance(error, Problem) else 0)
