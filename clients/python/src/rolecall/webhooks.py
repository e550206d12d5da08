"""Verifies deliveries of webhooks (Standard Webhooks 1.0)."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import time
from collections.abc import Mapping
from typing import cast

from .models import Change
from .problems import RolecallError


class DeliveryInvalid(RolecallError):
    """The webhook has not sent this delivery, or not at this time. Answer it with 401, and do not
    use its body."""


class WebhookVerifier:
    """Verifies the deliveries of a webhook by its secret: whsec_ and base64. To accept an old and a
    new secret for a while, pass both. tolerance is the maximum age in seconds."""

    def __init__(self, secret: str, *others: str, tolerance: float = 300) -> None:
        self._keys = [_key(s) for s in (secret, *others)]
        self._tolerance = tolerance

    def verify(self, headers: Mapping[str, str], body: bytes) -> Change:
        """Returns the item of a delivery, or raises DeliveryInvalid. body is the unchanged body of the
        request. A delivery can arrive more than once, and has the same webhook-id then."""
        sent = {name.lower(): value for name, value in headers.items()}
        id, timestamp, signatures = (sent.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
        if not id or not signatures or not re.fullmatch("[0-9]{1,15}", timestamp):
            raise DeliveryInvalid("webhook-id, webhook-timestamp or webhook-signature is missing or malformed")
        if abs(time.time() - int(timestamp)) > self._tolerance:
            raise DeliveryInvalid("the delivery is too old, or its time is in the future")
        valid = False
        for key in self._keys:
            mac = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, "sha256")
            want = b"v1," + base64.b64encode(mac)
            for signature in signatures.split(" "):
                valid = hmac.compare_digest(signature.encode(), want) or valid
        if not valid:
            raise DeliveryInvalid("no signature matches")
        return cast(Change, json.loads(body))


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError("the secret of a webhook must be whsec_ and base64")  # without the secret
    return key
