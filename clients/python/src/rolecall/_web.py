"""What the middleware of both frameworks shares."""

from __future__ import annotations

from ._memory import Credential

SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
CROSS_SITE = "This request is from another site."
NO_ANSWER = "Permissions cannot be checked at the moment. Try again in a minute."
SIGN_IN = "Sign in first."


def lacks(permission: str) -> str:
    """Returns the explanation of a 403."""
    return f"You need the permission {permission}."


def is_cross_site(method: str, credential: Credential, site: str | None) -> bool:
    """Reports whether a page of another site sends the request. Browsers add the session cookie to some
    of its requests, and the header Sec-Fetch-Site to all."""
    return method not in SAFE_METHODS and credential.cookie != "" and site not in (None, "", "same-origin", "none")
