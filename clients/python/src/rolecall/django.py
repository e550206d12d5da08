"""Middleware and a decorator for Django. In the settings:

    MIDDLEWARE = [..., "rolecall.django.RolecallMiddleware"]
    ROLECALL = {"base": "https://id.example.com", "tenant": "acme", "feed_token": token}

For several tenants, ROLECALL is a function that returns the Principals of the tenant of a request, such as
lambda request: principals.for_tenant(…).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from . import _web
from ._memory import Credential, Principal
from .principals import Principals
from .problems import Forbidden, RolecallError, Unauthenticated

View = Callable[..., HttpResponseBase]


class RolecallMiddleware:
    """Sets request.principal to the caller, or to None if nobody is signed in. It answers 503 if
    Rolecall does not answer, and 403 if the tenant is suspended, or if a page of another site sends a change with the
    cookie."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        configured: Any = settings.ROLECALL
        self._choose: Callable[[HttpRequest], Principals | None] = configured
        if not callable(configured):
            principals = Principals(**configured)
            self._choose = lambda _: principals

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        principal: Principal | None = None
        credential = Credential.of(request.headers.get("authorization"), request.headers.get("cookie"))
        if credential is not None:
            if _web.is_cross_site(request.method or "", credential, request.headers):
                return JsonResponse({"detail": _web.CROSS_SITE}, status=403)
            principals = self._choose(request)
            try:
                if principals is not None:
                    principal = principals.get(credential)
            except Unauthenticated:
                pass  # as without a credential
            except Forbidden as error:
                return JsonResponse({"detail": error.detail}, status=403)
            except RolecallError:
                return JsonResponse({"detail": _web.NO_ANSWER}, status=503)
        setattr(request, "principal", principal)
        return self._get_response(request)


def principal_of(request: HttpRequest) -> Principal | None:
    """Returns the caller, or None if nobody is signed in."""
    found: Principal | None = getattr(request, "principal")
    return found


def require(permission: str, department: Callable[[HttpRequest], str | None] | None = None) -> Callable[[View], View]:
    """Returns a decorator of a view. It answers 401 if nobody is signed in, and 403 if the caller lacks
    the permission. department returns the department of the object of the action. Without it, the
    caller needs the permission in the whole tenant."""

    def decorate(view: View) -> View:
        @wraps(view)
        def authorized(request: HttpRequest, *arguments: object, **options: object) -> HttpResponseBase:
            principal = principal_of(request)
            if principal is None:
                return JsonResponse({"detail": _web.SIGN_IN}, status=401)
            if not principal.can(permission, department(request) if department else None):
                return JsonResponse({"detail": _web.lacks(permission)}, status=403)
            return view(request, *arguments, **options)

        return authorized

    return decorate
