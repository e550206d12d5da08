import os

from rolecall import Client, etag

with Client(os.environ["ROLECALL"], "acme") as client:
    client.login({"email": "ada@example.com", "password": os.environ["PASSWORD"]})
    for user in client.iter_users(department="Sales"):
        print(user["id"], user.get("name"))
    ada = client.get_user(os.environ["ADA"])
    client.update_user(ada["id"], {"name": "Ada Byron"}, if_match=etag(ada))
