"""Verifies deliveries of webhooks with the official Python library, as main.go does with that for Go."""

import json
import sys

from standardwebhooks import Webhook


def is_valid(d):
    try:
        headers = {"webhook-id": d["id"], "webhook-timestamp": d["timestamp"], "webhook-signature": d["signature"]}
        Webhook(d["secret"]).verify(d["body"], headers)
        return True
    except Exception:  # the library raises its own error, or that of a parser
        return False


refused = 0
for line in sys.stdin:
    d = json.loads(line)
    if not is_valid(d):
        sys.exit("a delivery is refused")
    for member in ("id", "timestamp", "body"):
        text = d[member].encode()
        for i in range(len(text)):
            changed = bytearray(text)
            changed[i] ^= 1
            if is_valid({**d, member: changed.decode(errors="replace")}):
                sys.exit("a changed delivery is accepted")
            refused += 1
if refused == 0:
    sys.exit("no delivery was read")
print("Python:", refused, "changed deliveries refused")
