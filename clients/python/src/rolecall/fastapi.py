"""Middleware and dependencies for FastAPI.

    principals = AsyncPrincipals("https://id.example.com", "acme", feed_token=token)
    app = FastAPI()
    app.add_middleware(RolecallMiddleware, principals=principals)

    @app.get("/invoices")
    def invoices(principal: Annotated[Principal, Depends(require("shop/invoices:read"))]) -> …:
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from . import _web
from ._memory import Credential, Principal
from .principals import AsyncPrincipals
from .problems import Forbidden, RolecallError, Unauthenticated

Chooser = Callable[[HTTPConnection], AsyncPrincipals | None]
"""Returns the principals of the tenant of a request, for example by its host. None refuses every
credential."""


class RolecallMiddleware:
    """Sets request.state.principal to the caller, or to None if nobody is signed in. It answers 503 if
    Rolecall does not answer, and 403 if the tenant is suspended, or if a page of another site sends a change with the
    cookie. It answers 400 to a Host header with other characters than those of a host and a port: some versions of
    Starlette join it to the path in request.url, so it could choose the tenant."""

    def __init__(self, app: ASGIApp, principals: AsyncPrincipals | Chooser) -> None:
        self._app = app
        self._choose: Chooser = (lambda _: principals) if isinstance(principals, AsyncPrincipals) else principals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        request.state.principal = None
        credential = Credential.of(request.headers.get("authorization"), request.headers.get("cookie"))
        if credential is not None:
            if _web.is_cross_site(scope.get("method", "WEBSOCKET"), credential, request.headers):
                await JSONResponse({"detail": _web.CROSS_SITE}, 403)(scope, receive, send)
                return
            if not _web.HOST.fullmatch(request.headers.get("host", "")):
                await JSONResponse({"detail": _web.NO_HOST}, 400)(scope, receive, send)
                return
            principals = self._choose(request)
            try:
                if principals is not None:
                    request.state.principal = await principals.get(credential)
            except Unauthenticated:
                pass  # as without a credential
            except Forbidden as error:
                await JSONResponse({"detail": error.detail}, 403)(scope, receive, send)
                return
            except RolecallError:
                await JSONResponse({"detail": _web.NO_ANSWER}, 503)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def signed_in(request: HTTPConnection) -> Principal:
    """A dependency that returns the caller, or answers 401."""
    principal: Principal | None = request.state.principal
    if principal is None:
        raise HTTPException(401, _web.SIGN_IN)
    return principal


def require(permission: str, department: Callable[[HTTPConnection], str | None] | None = None) -> Callable[[HTTPConnection], Principal]:
    """Returns a dependency that returns the caller, and answers 403 if the caller lacks the permission.
    department returns the department of the object of the action. Without it, the caller needs the
    permission in the whole tenant."""

    def authorized(request: HTTPConnection) -> Principal:
        principal = signed_in(request)
        if not principal.can(permission, department(request) if department else None):
            raise HTTPException(403, _web.lacks(permission))
        return principal

    return authorized
