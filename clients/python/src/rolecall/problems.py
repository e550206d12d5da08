"""The errors of the client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class RolecallError(Exception):
    """The base class of all errors of the client."""


class ConnectionLost(RolecallError):
    """A request got no complete response, so it is unknown whether it had an effect."""


@dataclass(frozen=True)
class FieldError:
    """One error in a request. One of pointer, header and parameter is not empty and has its place."""

    code: str
    detail: str
    pointer: str = ""
    """A JSON pointer into the body of the request."""
    header: str = ""
    """The name of a header."""
    parameter: str = ""
    """The name of a parameter of the path or the query."""


class Problem(RolecallError):
    """An error response (RFC 9457). To distinguish problems in a program, compare code."""

    def __init__(self, status: int, body: dict[str, Any], retry_after: float = 0) -> None:
        self.status = status
        self.code = str(body.get("code", "unknown"))
        self.title = str(body.get("title", ""))
        self.detail = str(body.get("detail", "The response is not from Rolecall."))
        self.instance = str(body.get("instance", ""))
        self.request_id = str(body.get("requestId", ""))
        self.errors = [
            FieldError(e.get("code", ""), e.get("detail", ""), e.get("pointer", ""), e.get("header", ""), e.get("parameter", ""))
            for e in body.get("errors", [])
        ]
        """All errors of the request, with their places."""
        self.more_errors = bool(body.get("moreErrors", False))
        """Whether the request has more errors than errors lists."""
        self.challenge: str | None = body.get("challenge")
        """Set if the sign-in needs a second factor. Pass it to complete_login or begin_enrolment."""
        self.methods: list[str] = body.get("methods", [])
        """The accepted second factors: totp, passkey and recovery-code. Later versions can add values."""
        self.public_key: dict[str, Any] | None = body.get("publicKey")
        """The options for navigator.credentials.get, if the user has a passkey."""
        self.retry_after = retry_after
        """How many seconds to wait before a repetition. 0 if the response does not say it."""
        faults = "".join(f"; {e.pointer or e.header or e.parameter} {e.detail}" for e in self.errors)
        super().__init__(f"{status} {self.code}: {self.detail}{faults}")


class BadRequest(Problem):
    """400: the request is malformed."""


class Unauthenticated(Problem):
    """401: there is no valid session or token, or the sign-in failed."""


class Forbidden(Problem):
    """403: the caller lacks a permission, or must re-authenticate (code reauthentication-required)."""


class NotFound(Problem):
    """404: the object does not exist, or the caller may not know of it."""


class Conflict(Problem):
    """409: the request contradicts the state of the object."""


class Gone(Problem):
    """410: the data was deleted. For a change feed, read the lists again (code changes-expired)."""


class PreconditionFailed(Problem):
    """412: the object has changed since the ETag in if_match was read."""


class Invalid(Problem):
    """422: the body breaks rules. errors has the place of each error."""


class PreconditionRequired(Problem):
    """428: the request needs if_match. Read the object first."""


class TooManyRequests(Problem):
    """429: a limit was reached. Wait for retry_after seconds."""


class Unavailable(Problem):
    """503: the service is busy or restarting."""


KINDS: dict[int, type[Problem]] = {
    400: BadRequest, 401: Unauthenticated, 403: Forbidden, 404: NotFound, 409: Conflict,
    410: Gone, 412: PreconditionFailed, 422: Invalid, 428: PreconditionRequired, 429: TooManyRequests, 503: Unavailable,
}  # fmt: skip
