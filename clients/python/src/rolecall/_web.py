"""What the middleware of both frameworks shares."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ._memory import Credential

SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
CROSS_SITE = "This request is from another site."
NO_ANSWER = "Permissions cannot be checked at the moment. Try again in a minute."
SIGN_IN = "Sign in first."
NO_HOST = "The Host header is not a host name."
HOST = re.compile(r"[A-Za-z0-9._-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")


def lacks(permission: str) -> str:
    """Returns the explanation of a 403."""
    return f"You need the permission {permission}."


def is_cross_site(method: str, credential: Credential, headers: Mapping[str, str]) -> bool:
    """Reports whether a page of another site sends a change, or opens a WebSocket. Browsers add the session
    cookie to some of its requests, and the header Sec-Fetch-Site or at least Origin to all."""
    if (method in SAFE_METHODS and not headers.get("upgrade")) or credential.cookie == "":
        return False
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = headers.get("origin", "")
    return origin != "" and origin.partition("://")[2].lower() != headers.get("host", "").lower()
