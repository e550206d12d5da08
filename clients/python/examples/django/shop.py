"""A Django application in one file. Start it with: python shop.py runserver"""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

from rolecall import Client
from rolecall.django import principal_of, require

ROLECALL, TENANT = os.environ["SERVICE_URL"], os.environ["TENANT"]

settings.configure(
    SECRET_KEY=os.urandom(32).hex(),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["rolecall.django.RolecallMiddleware"],
    ROLECALL={"base": ROLECALL, "tenant": TENANT, "feed_token": os.environ["FEED_TOKEN"]},
)

DEPARTMENTS = {"1": "Sales", "2": "Engineering"}


def browser(request: HttpRequest) -> dict[str, str]:
    """Returns the IP address and the name of the browser, for the limits and the list of sessions."""
    return {"x-forwarded-for": request.META["REMOTE_ADDR"], "user-agent": request.headers.get("user-agent", "")}


def sign_in(request: HttpRequest) -> JsonResponse:
    with Client(ROLECALL, TENANT, headers=browser(request)) as client:
        signed = client.login({"email": request.POST["email"], "password": request.POST["password"], "transport": "bearer"})
    return JsonResponse({"token": signed.get("token", "")})


def who_am_i(request: HttpRequest) -> JsonResponse:
    principal = principal_of(request)
    return JsonResponse({"id": principal.id if principal else None})


def department_of(request: HttpRequest) -> str | None:
    assert request.resolver_match is not None
    return DEPARTMENTS.get(request.resolver_match.kwargs["id"])


@require("shop/invoices:approve", department_of)
def approve(request: HttpRequest, id: str) -> JsonResponse:
    return JsonResponse({"approved": id})


@require("shop/reports:read")
def report(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"invoices": len(DEPARTMENTS)})


urlpatterns: list[Any] = [path("sign-in", sign_in), path("me", who_am_i), path("invoices/<id>/approve", approve), path("report", report)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
