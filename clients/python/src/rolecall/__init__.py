"""The Python client of Rolecall.

    client = Client("https://id.example.com", "acme")
    client.login({"email": "ada@example.com", "password": password})
    for user in client.iter_users(department="Sales"):
        print(user["name"])

AsyncClient has the same methods for asyncio. Objects of the API are dictionaries with types in
rolecall.models. Every error response is a Problem. The permission check in memory is in Principals,
and the middleware in rolecall.fastapi and rolecall.django.
"""

from ._core import etag
from ._memory import Credential, Principal
from .client import AsyncClient, ChangesExpired, Client
from .permissions import can, covers
from .principals import AsyncPrincipals, Principals
from .problems import (
    BadRequest,
    Conflict,
    ConnectionLost,
    FieldError,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
    Problem,
    RolecallError,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from .webhooks import DeliveryInvalid, WebhookVerifier

__all__ = [
    "AsyncClient",
    "AsyncPrincipals",
    "BadRequest",
    "ChangesExpired",
    "Client",
    "Conflict",
    "ConnectionLost",
    "Credential",
    "DeliveryInvalid",
    "FieldError",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "PreconditionFailed",
    "PreconditionRequired",
    "Principal",
    "Principals",
    "Problem",
    "RolecallError",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "WebhookVerifier",
    "can",
    "covers",
    "etag",
]
