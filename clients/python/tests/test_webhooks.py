from __future__ import annotations

import base64
import json
import time

import pytest
from standardwebhooks import Webhook

from rolecall import DeliveryInvalid, WebhookVerifier

SECRET, OTHER = ("whsec_" + base64.b64encode(bytes([n]) * 24).decode() for n in (1, 2))
BODY = json.dumps({"id": "1", "type": "user.updated", "data": {"tenant": "acme"}}).encode()


def sign(secret: str, at: float | None = None, body: bytes = BODY, id: str = "msg_1") -> dict[str, str]:
    """Returns the headers of a delivery, signed by the official library of Standard Webhooks."""
    from datetime import datetime, timezone

    sent = datetime.fromtimestamp(int(time.time() if at is None else at), timezone.utc)
    signature = Webhook(secret).sign(id, sent, body.decode())
    return {"Webhook-Id": id, "webhook-timestamp": str(int(sent.timestamp())), "WEBHOOK-SIGNATURE": signature}


def test_deliveries_are_verified() -> None:
    assert WebhookVerifier(SECRET).verify(sign(SECRET), BODY)["type"] == "user.updated"
    assert WebhookVerifier(OTHER, SECRET).verify(sign(SECRET), BODY)["id"] == "1"


def test_one_of_several_signatures_is_enough() -> None:
    headers, other = sign(SECRET), sign(OTHER)
    for signatures in (f"{other['WEBHOOK-SIGNATURE']} {headers['WEBHOOK-SIGNATURE']}", f"v1a,x v2,y {headers['WEBHOOK-SIGNATURE']} "):
        WebhookVerifier(SECRET).verify({**headers, "WEBHOOK-SIGNATURE": signatures}, BODY)


@pytest.mark.parametrize("shift", [-301, -299, 299, 302])
def test_the_time_is_checked(shift: int) -> None:
    headers = sign(SECRET, time.time() + shift)
    if abs(shift) < 300:
        WebhookVerifier(SECRET).verify(headers, BODY)
        return
    with pytest.raises(DeliveryInvalid):
        WebhookVerifier(SECRET).verify(headers, BODY)
    WebhookVerifier(SECRET, tolerance=600).verify(headers, BODY)


@pytest.mark.parametrize("name", ["Webhook-Id", "webhook-timestamp", "WEBHOOK-SIGNATURE"])
@pytest.mark.parametrize("value", ["", "x", "1e3", "-1", "９", "v1,", "v1,é", "nan"])
def test_changed_headers_are_refused(name: str, value: str) -> None:
    with pytest.raises(DeliveryInvalid):
        WebhookVerifier(SECRET).verify({**sign(SECRET), name: value}, BODY)


def test_changed_bodies_are_refused() -> None:
    headers = sign(SECRET)
    for i in range(len(BODY)):
        changed = bytearray(BODY)
        changed[i] ^= 1
        with pytest.raises(DeliveryInvalid):
            WebhookVerifier(SECRET).verify(headers, bytes(changed))
    with pytest.raises(DeliveryInvalid):
        WebhookVerifier(OTHER).verify(headers, BODY)
    with pytest.raises(DeliveryInvalid):
        WebhookVerifier(SECRET).verify({}, BODY)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!", "whsec_AAA"])
def test_malformed_secrets_are_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="must be whsec_ and base64"):
        WebhookVerifier(secret)
