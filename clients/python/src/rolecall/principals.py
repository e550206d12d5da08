"""The permission check in memory."""

from __future__ import annotations

import asyncio
import copy
import logging
import re
import threading
from collections.abc import Mapping
from typing import Any, cast

import httpx

from ._core import AsyncSender, Call, Sender, pause_after
from ._memory import READ_AGAIN, TRUST, TRUST_OF_ALL, Credential, Memory, Principal
from .models import Changes, CurrentSession
from .problems import ConnectionLost, Forbidden, Gone, Problem, RolecallError, Unauthenticated

POLL = 0.2
"""Seconds between two requests for changes. Entries are used while the last one without further changes
began less than a second ago. A request that waits for changes could not prove that in time."""
LOAD_TIMEOUT = 5.0
LONGEST_PAUSE = 1.0
"""Seconds for which the caller of get waits before it repeats a request."""
FEED_TIMEOUT = 1.0
TENANT_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,62}")

_log = logging.getLogger("rolecall")


class Principals:
    """Returns the principals of requests to your application, for one tenant of Rolecall or for several. Most
    answers come from memory. It is safe for use in several threads. It can be created before a process forks, but
    must be used only after that.

    feed_token is an API token of a service account with changes:read in the whole tenant. With it, a
    thread follows the changes of the tenant, and removes the principals that have changed. A revoked
    session, role or permission then has an effect within a second. Without a token, or while the changes
    cannot be read, each call is a request to Rolecall. While get is not called, nothing is sent.

    For several tenants, feed_token is an operator key with the scope changes, and for_tenant returns the principals of
    each tenant. One feed has the changes of all. feed_url is the address that answers requests for changes, such
    as that of --operator-listen. The default is base.
    """

    def __init__(
        self, base: str, tenant: str = "", *, feed_token: str | None = None, feed_url: str | None = None, capacity: int = 10_000, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._tenant = tenant
        self._memory = _memory_for(feed_token, capacity)
        self._loads = Sender(base, retries=1, longest_pause=LONGEST_PAUSE, http=httpx.Client(timeout=LOAD_TIMEOUT, transport=transport))
        self._thread: _FeedThread | None = None
        if feed_token:
            feed = Sender(feed_url or base, token=feed_token, retries=0, http=httpx.Client(timeout=FEED_TIMEOUT, transport=transport))
            self._thread = _FeedThread(feed, _Follower(self._memory, tenant, feed_token))

    def for_tenant(self, tenant: str) -> Principals:
        """Returns the principals of another tenant, with the same memory. Close only the original."""
        _check_for_tenant(self._thread.follower if self._thread else None)
        others = copy.copy(self)
        others._tenant = tenant
        return others

    def get(self, credential: Credential) -> Principal:
        """Returns the principal of the credential. It raises Unauthenticated if the session or token is
        not valid, Forbidden if the tenant is suspended, and another RolecallError if Rolecall does not
        answer: refuse the request then with 503, and do not treat the user as signed out."""
        _check_name(self._tenant)
        if self._thread is not None:
            self._thread.wake()
        key = credential.hash(self._tenant)
        principal = self._memory.get(key)
        if principal is not None:
            return principal
        began = self._memory.now()
        try:
            current = self._loads.send(_load(self._tenant, credential))
        except (Unauthenticated, Forbidden):
            self._memory.forget(key)
            raise
        principal = Principal(cast(CurrentSession, current))
        if self._thread is not None and self._is_followed(self._thread):
            self._memory.add(key, principal, began, self._tenant)
        return principal

    def _is_followed(self, thread: _FeedThread) -> bool:
        """Reports whether the feed has the changes of the tenant."""
        call = thread.follower.check(self._tenant)
        if call is not None:
            try:
                thread.feed.send(call)
            except RolecallError as error:
                return thread.follower.refused(self._tenant, error)
            thread.follower.covered[self._tenant] = True
        return thread.follower.covers(self._tenant)

    def close(self) -> None:
        """Stops the thread and closes the connections."""
        if self._thread is not None:
            self._thread.close()
        self._loads.http.close()

    def __enter__(self) -> Principals:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _FeedThread:
    """Follows a feed in a thread, while it is wanted."""

    def __init__(self, feed: Sender, follower: _Follower) -> None:
        self.feed, self.follower = feed, follower
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._wanted, self._closed = threading.Event(), threading.Event()

    def wake(self) -> None:
        """Lets the thread read the feed."""
        self._wanted.set()
        if self._thread is not None and self._thread.is_alive():
            return
        with self._starting:
            if not self._closed.is_set() and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._follow, name="rolecall-changes", daemon=True)
                self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
        self.feed.http.close()

    def _follow(self) -> None:
        while self._wanted.wait() and not self._closed.is_set():
            self._wanted.clear()
            call, began = self.follower.next()
            try:
                pause = self.follower.read(self.feed.send(call), began)
            except Exception as error:  # the thread must go on after an unexpected error too
                pause = self.follower.failed(error)
            if pause == 0:
                self._wanted.set()
            self._closed.wait(pause)


class AsyncPrincipals:
    """Like Principals, for asyncio. It can be created before an event loop runs. Use it in one event loop only,
    because its task and its connections belong to the loop of the first call."""

    def __init__(
        self, base: str, tenant: str = "", *, feed_token: str | None = None, feed_url: str | None = None, capacity: int = 10_000, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._tenant = tenant
        self._memory = _memory_for(feed_token, capacity)
        self._loads = AsyncSender(base, retries=1, longest_pause=LONGEST_PAUSE, http=httpx.AsyncClient(timeout=LOAD_TIMEOUT, transport=transport))
        self._task: _FeedTask | None = None
        if feed_token:
            feed = AsyncSender(feed_url or base, token=feed_token, retries=0, http=httpx.AsyncClient(timeout=FEED_TIMEOUT, transport=transport))
            self._task = _FeedTask(feed, _Follower(self._memory, tenant, feed_token))

    def for_tenant(self, tenant: str) -> AsyncPrincipals:
        """Like Principals.for_tenant."""
        _check_for_tenant(self._task.follower if self._task else None)
        others = copy.copy(self)
        others._tenant = tenant
        return others

    async def get(self, credential: Credential) -> Principal:
        """Like Principals.get."""
        _check_name(self._tenant)
        if self._task is not None:
            self._task.wake()
        key = credential.hash(self._tenant)
        principal = self._memory.get(key)
        if principal is not None:
            return principal
        began = self._memory.now()
        try:
            current = await self._loads.send(_load(self._tenant, credential))
        except (Unauthenticated, Forbidden):
            self._memory.forget(key)
            raise
        principal = Principal(cast(CurrentSession, current))
        if self._task is not None and await self._is_followed(self._task):
            self._memory.add(key, principal, began, self._tenant)
        return principal

    async def _is_followed(self, task: _FeedTask) -> bool:
        """Like Principals._is_followed."""
        call = task.follower.check(self._tenant)
        if call is not None:
            try:
                await task.feed.send(call)
            except RolecallError as error:
                return task.follower.refused(self._tenant, error)
            task.follower.covered[self._tenant] = True
        return task.follower.covers(self._tenant)

    async def close(self) -> None:
        """Stops the task and closes the connections."""
        if self._task is not None:
            await self._task.close()
        await self._loads.http.aclose()

    async def __aenter__(self) -> AsyncPrincipals:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _FeedTask:
    """Follows a feed in a task, while it is wanted."""

    def __init__(self, feed: AsyncSender, follower: _Follower) -> None:
        self.feed, self.follower = feed, follower
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._is_closed = False

    def wake(self) -> None:
        """Lets the task read the feed."""
        self._wanted.set()
        if not self._is_closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._follow(), name="rolecall-changes")

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.feed.http.aclose()

    async def _follow(self) -> None:
        while await self._wanted.wait():
            self._wanted.clear()
            call, began = self.follower.next()
            try:
                pause = self.follower.read(await self.feed.send(call), began)
            except Exception as error:  # the task must go on after an unexpected error too
                pause = self.follower.failed(error)
            if pause == 0:
                self._wanted.set()
            await asyncio.sleep(pause)


def _is_of_all(feed_token: str | None) -> bool:
    """Reports whether the token is an operator key, which follows all tenants."""
    return (feed_token or "").startswith("rco_")


def _memory_for(feed_token: str | None, capacity: int) -> Memory:
    return Memory(capacity, trust=TRUST_OF_ALL if _is_of_all(feed_token) else TRUST)


def _check_name(tenant: str) -> None:
    """Raises Unauthenticated if no tenant can have the name. A name that an application takes from a request can
    be anything."""
    if not TENANT_NAME.fullmatch(tenant):
        raise Unauthenticated(401, {"code": "unauthenticated", "detail": "No tenant can have this name."})


def _check_for_tenant(follower: _Follower | None) -> None:
    if follower is not None and not follower.is_of_all:
        raise ValueError("an API token follows the changes of one tenant: for several tenants, pass an operator key as feed_token")


def _load(tenant: str, credential: Credential) -> Call:
    return Call("GET", "/auths/session", headers={**({"x-tenant-schema": tenant} if tenant else {}), **credential.headers()})


class _Follower:
    """Keeps a memory up to date with the pages of the feed. Both classes above share it."""

    def __init__(self, memory: Memory, tenant: str, feed_token: str) -> None:
        self._memory, self._tenant, self._cursor, self._failures = memory, tenant, "", 0
        self._is_reported = False
        self._read_at = float("-inf")
        self.is_of_all = _is_of_all(feed_token)
        self.covered: dict[str, bool] = {}
        """Whether the operator key is for a tenant."""

    def check(self, tenant: str) -> Call | None:
        """Returns the request that checks whether the key is for the tenant, or None if that is known. The feed of a
        key that is limited to other tenants has no changes of this one, and looks the same."""
        if not self.is_of_all or tenant in self.covered:
            return None
        return Call("GET", "/changes", {"at": "now"}, headers={"x-tenant-schema": tenant})

    def refused(self, tenant: str, error: RolecallError) -> bool:
        """Records that the key is not for the tenant, and returns False."""
        if isinstance(error, Problem) and error.status in (401, 403):
            self.covered[tenant] = False
            _log.warning("rolecall: the operator key is not for the tenant %s, so each of its permissions is checked with Rolecall: %s", tenant, error)
        return False

    def covers(self, tenant: str) -> bool:
        """Reports whether the feed has the changes of the tenant."""
        return not self.is_of_all or self.covered.get(tenant, False)

    def next(self) -> tuple[Call, float]:
        """Returns the next request for changes, and the time at which it begins."""
        now = self._memory.now()
        if now - self._read_at > READ_AGAIN:
            self._cursor = ""  # the memory has no entry from before
        query: Mapping[str, Any] = {"after": self._cursor, "limit": 200} if self._cursor else {"at": "now"}
        if self.is_of_all:
            return Call("GET", "/operator/changes", query), now
        return Call("GET", "/changes", query, headers={"x-tenant-schema": self._tenant} if self._tenant else {}), now

    def read(self, page: Changes, began: float) -> float:
        """Applies the response, and returns the seconds until the next request."""
        if not self._cursor:
            self._memory.clear()  # changes before the cursor are unknown
        self._memory.apply(page["items"])
        self._failures, self._cursor, self._read_at = 0, page["nextCursor"], began
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
