"""Parses each item of the JSON array in a file with the CloudEvents SDK for Python, and prints the
number of items and of their types. It fails if the SDK refuses an item, or reads another value than
the item has."""

import json
import sys
from datetime import datetime

from cloudevents.core.bindings.http import HTTPMessage, from_structured_event

with open(sys.argv[1], encoding="utf-8") as file:
    items = json.load(file)
for item in items:
    body = json.dumps(item).encode()
    event = from_structured_event(HTTPMessage(headers={"content-type": "application/cloudevents+json"}, body=body))
    read = {
        "specversion": event.get_specversion(),
        "id": event.get_id(),
        "source": event.get_source(),
        "type": event.get_type(),
        "subject": event.get_subject(),
        "datacontenttype": event.get_datacontenttype(),
        "data": event.get_data(),
    }
    for name, value in read.items():
        if value != item[name]:
            sys.exit(f"{name} of {item['id']} is {value!r}, not {item[name]!r}")
    if event.get_time() != datetime.fromisoformat(item["time"]):
        sys.exit(f"time of {item['id']} is {event.get_time()}, not {item['time']}")
print(len(items), len({item["type"] for item in items}))
