"""Keeps principals in memory. Nothing here does I/O, so it is the same with and without asyncio."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from .models import Change, CurrentSession
from .permissions import can

TRUST = 0.8
"""Seconds for which a response of the feed proves that the memory has all changes. It is less than a
second, so that there is time for the request that follows."""
TRUST_OF_ALL = 0.5
"""The same for the feed of all tenants, into which a node puts events some milliseconds after their commit."""
NODE_LAG = 1.0
"""Seconds by which the data that a node of Rolecall returns can be out of date."""
READ_AGAIN = 10.0
"""Seconds after which an entry is read again, which also extends the idle time of the session. It is the default
time for which a replaced session token works, so that Rolecall sees a later use of the token."""
SLOWEST_LOAD = 10.0
"""Seconds after which the response to a load is not kept."""

TEXTS_PER_ENTRY = 100
"""Limits the permissions and departments of all principals together: their average number for an entry of a full memory."""

# Changes that do not affect what a caller may do: those with KeepsAccess in event.go of Rolecall. Other types, also
# those of later versions, do.
HARMLESS = frozenset({
    "user.created", "user.invited", "user.invitation_withdrawn", "user.email_change_requested", "role.created", "group.created",
    "session.started", "session.sign_in_failed", "user.password_reset_requested", "user.recovery_codes_made",
    "user.recovery_code_used", "connection.created", "connection.tested", "connection.groups_skipped",
    "directory.created", "directory.updated", "directory.deleted", "directory.token_created", "directory.token_revoked",
    "token.created", "service_account.created",
    "tenant.logo_changed", "tenant.logo_removed", "request.refused", "mail.undeliverable", "users.exported",
    "role.users_exported", "events.exported", "job.started", "job.canceled", "job.ended",
})  # fmt: skip


class Credential(NamedTuple):
    """What identifies the caller of a request: the header Authorization with a token of Rolecall, or
    the session cookie."""

    authorization: str
    cookie: str

    @classmethod
    def of(cls, authorization: str | None, cookie: str | None) -> Credential | None:
        """Returns the credential in the headers of a request, or None. Other cookies and other
        schemes of authorization are ignored."""
        scheme, _, token = (authorization or "").partition(" ")
        is_ours = scheme.lower() == "bearer" and token.strip().startswith(("rs_", "rc_", "rco_"))
        pairs = [pair.strip() for pair in (cookie or "").split(";")]
        session = "; ".join(pair for pair in pairs if pair.partition("=")[0].removeprefix("__Host-") == "session")
        found = cls(f"Bearer {token.strip()}" if is_ours else "", session)
        return found if found.authorization or found.cookie else None

    def headers(self) -> dict[str, str]:
        """Returns the headers that send the credential to Rolecall."""
        return {name: value for name, value in (("authorization", self.authorization), ("cookie", self.cookie)) if value}

    def hash(self, tenant: str = "") -> bytes:
        """Returns the key of the credential in the memory, which then has no secrets."""
        return hashlib.sha256(f"{tenant}\n{self.authorization}\n{self.cookie}".encode()).digest()


@dataclass(frozen=True)
class Principal:
    """The caller of a request, with the permissions."""

    current: CurrentSession
    """The response of get_session."""

    @property
    def type(self) -> str:
        """user, service_account or operator. Later versions can add values."""
        return self.current["principal"]["type"]

    @property
    def id(self) -> str:
        """The ID of the user or service account. Store it with your data."""
        return self.current["principal"]["id"]

    @property
    def name(self) -> str:
        """The name of the user or service account."""
        return self.current["principal"]["name"]

    def can(self, permission: str, department: str | None = None) -> bool:
        """Reports whether the caller has the permission: in the whole tenant, or for one department."""
        return can(self.current, permission, department)


@dataclass(frozen=True)
class _Entry:
    principal: Principal
    tenant: str
    texts: int
    loaded: float  # when the request began
    expires: float  # by the wall clock


class Memory:
    """Principals by credential. It has at most capacity entries, with at most TEXTS_PER_ENTRY times as many
    permissions and departments, because a principal can have 50,000 of them. It removes the least recently used.

    An entry is used only if the feed had no further changes less than TRUST seconds ago, also if the
    entry was read after that: the node that was asked can be NODE_LAG behind, and the feed is not."""

    def __init__(self, capacity: int, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time, *, trust: float = TRUST) -> None:
        self._capacity, self._clock, self._wall, self._trust = capacity, clock, wall, trust
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._texts = 0  # of all entries
        self._keys: dict[str, set[bytes]] = {}  # by the ID of the principal, and by the tenant
        self._confirmed = float("-inf")
        self._evicted: OrderedDict[str, float] = OrderedDict()  # when a principal or a tenant was removed
        self._cleared = float("-inf")

    def __len__(self) -> int:
        return len(self._entries)

    def now(self) -> float:
        """Returns the time to pass to add and confirm: when the request to Rolecall began."""
        return self._clock()

    def get(self, key: bytes) -> Principal | None:
        """Returns the principal of a credential if it can be trusted."""
        with self._lock:
            entry, now = self._entries.get(key), self._clock()
            if entry is None:
                return None
            if now - entry.loaded >= READ_AGAIN or self._wall() >= entry.expires:
                self._remove(key)
                return None
            if now - self._confirmed >= self._trust:
                return None
            self._entries.move_to_end(key)
            return entry.principal

    def add(self, key: bytes, principal: Principal, began: float, tenant: str = "") -> None:
        """Keeps a principal that was read by a request that began at the time, unless it may have
        changed since. A node can be NODE_LAG behind, so a principal whose change was received less than
        NODE_LAG before the request is not kept either."""
        with self._lock:
            now = self._clock()
            changed = max(self._cleared, *(self._evicted.get(name, float("-inf")) for name in (principal.id, tenant)))
            if principal.type not in ("user", "service_account") or now - began > SLOWEST_LOAD or changed > began - NODE_LAG:
                self._remove(key)
                return
            self._remove(key)
            self._entries[key] = _Entry(principal, tenant, _texts_of(principal.current), began, _expiry(principal.current))
            self._texts += self._entries[key].texts
            for name in (principal.id, tenant):
                self._keys.setdefault(name, set()).add(key)
            while len(self._entries) > self._capacity or self._texts > self._capacity * TEXTS_PER_ENTRY:
                self._remove(next(iter(self._entries)))

    def forget(self, key: bytes) -> None:
        """Removes a credential that was refused."""
        with self._lock:
            self._remove(key)

    def apply(self, changes: list[Change]) -> None:
        """Removes the principals that the changes affect."""
        with self._lock:
            for change in changes:
                subject = change["data"]["subject"]
                if change["type"] in HARMLESS or subject["type"] == "webhook":
                    continue
                if subject["type"] in ("user", "service_account") and subject["id"] is not None:
                    self._evict(subject["id"])
                elif tenant := change["data"].get("tenant"):  # a role or the settings of the tenant, or a later version
                    self._evict(tenant)
                else:
                    self._clear()

    def confirm(self, began: float) -> None:
        """Records that the feed had no further changes after the time."""
        with self._lock:
            self._confirmed = max(self._confirmed, began)

    def clear(self) -> None:
        """Removes all principals, because changes may have been missed."""
        with self._lock:
            self._clear()

    def _evict(self, name: str) -> None:
        now = self._clock()
        for key in list(self._keys.get(name, ())):
            self._remove(key)
        self._evicted.pop(name, None)
        self._evicted[name] = now
        while self._evicted and now - next(iter(self._evicted.values())) > SLOWEST_LOAD + NODE_LAG:
            self._evicted.popitem(last=False)
        if len(self._evicted) > self._capacity:
            self._clear()

    def _clear(self) -> None:
        self._cleared = self._clock()
        self._entries.clear()
        self._texts = 0
        self._keys.clear()
        self._evicted.clear()

    def _remove(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._texts -= entry.texts
        for name in {entry.principal.id, entry.tenant}:
            keys = self._keys[name]
            keys.discard(key)
            if not keys:
                del self._keys[name]


def _texts_of(current: CurrentSession) -> int:
    """Returns the number of permissions and departments of the session."""
    scopes = current["scopedPermissions"]
    return len(current["permissions"]) + sum(len(scope["permissions"]) + len(scope["reach"]["departments"]) for scope in scopes)


def _expiry(current: CurrentSession) -> float:
    """Returns when the session, the token or the first assignment expires."""
    session = current["session"]
    times = [current["permissionsExpireAt"]] + ([session["expiresAt"], session["idleExpiresAt"], session.get("tokenExpiresAt")] if session else [])
    return min((datetime.fromisoformat(t.replace("Z", "+00:00")).timestamp() for t in times if t is not None), default=float("inf"))
