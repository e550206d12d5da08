"""The examples, run against the program."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from conftest import PASSWORD, PATIENCE, Demo, random_name, until
from test_webhooks import BODY, SECRET, sign

from rolecall import Client

EXAMPLES = __file__.rsplit("/", 2)[0] + "/examples"
PATIENT = f"import rolecall.principals; rolecall.principals.LOAD_TIMEOUT = {PATIENCE}\n"
FASTAPI = """
import socket, uvicorn
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config("main:app", log_level="warning")).run(sockets=[s])
"""
DJANGO = """
from wsgiref.simple_server import make_server
import shop
s = make_server("127.0.0.1", 0, shop.application)
print(s.server_port, flush=True)
s.serve_forever()
"""


@contextmanager
def run(demo: Demo, folder: str, program: str, feed_token: str) -> Iterator[httpx.Client]:
    """Runs an example, and returns a client for its address."""
    environment = {**os.environ, "SERVICE_URL": demo.address, "TENANT": demo.tenant, "FEED_TOKEN": feed_token, "WEBHOOK_SECRET": SECRET}
    with subprocess.Popen([sys.executable, "-c", PATIENT + program], cwd=f"{EXAMPLES}/{folder}", env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{int(process.stdout.readline())}", timeout=PATIENCE) as client:
                yield client
        finally:
            process.kill()


@pytest.fixture(scope="module")
def feed_token(demo: Demo, owner: Client) -> str:
    return demo.program_token(owner, "changes:read")[1]


def sign_in(application: httpx.Client, email: str, **form: Any) -> dict[str, str]:
    answer = application.post("/sign-in", **form)
    assert answer.status_code == 200, answer.text
    return {"authorization": f"Bearer {answer.json()['token']}"}


def test_fastapi(demo: Demo, owner: Client, feed_token: str) -> None:
    id, email = demo.user(owner, "shop/invoices:*", departments=["Sales"])
    with run(demo, "fastapi", FASTAPI, feed_token) as application:
        assert application.get("/invoices").status_code == 401
        assert application.get("/invoices", headers={"authorization": "Bearer rs_" + "x" * 43}).status_code == 401
        assert application.post("/sign-in", json={"email": email, "password": "wrong password"}).json()["code"] == "wrong-credentials"
        user = sign_in(application, email, json={"email": email, "password": PASSWORD})
        assert [i["id"] for i in application.get("/invoices", headers=user).json()] == ["1"]
        assert application.post("/invoices/1/approve", headers=user).json()["approved_by"] == id
        assert application.post("/invoices/2/approve", headers=user).status_code == 403
        assert application.get("/report", headers=user).status_code == 403
        refused = application.post("/colleagues", headers=user, json={"email": f"{random_name('new')}@demo.example", "name": "New"})
        assert (refused.status_code, refused.json()["code"]) == (403, "permission-denied")
        administrator = sign_in(application, demo.email, json={"email": demo.email, "password": demo.password})
        assert application.get("/report", headers=administrator).json() == {"approved": 1}
        invalid = application.post("/colleagues", headers=administrator, json={"email": "x", "name": "New Person"})
        assert invalid.status_code == 422 and invalid.json()["errors"][0]["field"] == "/email"
        invited = application.post("/colleagues", headers=administrator, json={"email": f"{random_name('new')}@demo.example", "name": "New Person"})
        assert owner.get_user(invited.json()["id"])["status"] == "pending"
        assert application.post("/webhooks", headers=sign(SECRET), content=BODY).json() == {"received": "user.updated"}
        assert application.post("/webhooks", headers=sign(SECRET), content=BODY + b" ").status_code == 401
        owner.end_user_sessions(id)
        ends_within_a_second(application, "/invoices", user)


def test_django(demo: Demo, owner: Client, feed_token: str) -> None:
    id, email = demo.user(owner, "shop/invoices:*", departments=["Sales"])
    with run(demo, "django", DJANGO, feed_token) as application:
        assert application.get("/me").json() == {"id": None} and application.get("/report").status_code == 401
        firefox = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
        user = sign_in(application, email, data={"email": email, "password": PASSWORD}, headers=firefox)
        assert owner.list_user_sessions(id)["items"][0]["client"] == "Firefox on Linux"
        assert application.get("/me", headers=user).json() == {"id": id}
        assert application.post("/invoices/1/approve", headers=user).json() == {"approved": "1"}
        assert application.post("/invoices/2/approve", headers=user).status_code == 403
        assert application.get("/report", headers=user).status_code == 403
        administrator = sign_in(application, demo.email, data={"email": demo.email, "password": demo.password})
        assert application.get("/report", headers=administrator).json() == {"invoices": 2}
        owner.suspend_user(id)
        ends_within_a_second(application, "/report", user)


@pytest.mark.parametrize(("folder", "program"), [("fastapi", FASTAPI), ("django", DJANGO)])
def test_cookies_and_other_sites(demo: Demo, owner: Client, feed_token: str, folder: str, program: str) -> None:
    cookie = {"cookie": "; ".join(owner._cookies)}
    with run(demo, folder, program, feed_token) as application:
        for site, status in ((None, 200), ("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
            headers = {**cookie, **({"sec-fetch-site": site} if site else {})}
            assert application.post("/invoices/1/approve", headers=headers).status_code == status
            assert application.get("/report", headers=headers).status_code == 200
        own = str(application.base_url).rstrip("/")
        for origin, status in ((own, 200), ("https://evil.example", 403), ("null", 403)):
            assert application.post("/invoices/1/approve", headers={**cookie, "origin": origin}).status_code == status
            upgrade = {**cookie, "origin": origin, "upgrade": "x"}
            assert application.get("/report", headers=upgrade).status_code == status


@pytest.mark.parametrize(("folder", "program"), [("fastapi", FASTAPI), ("django", DJANGO)])
def test_an_unreachable_service_gives_503(demo: Demo, feed_token: str, folder: str, program: str) -> None:
    from dataclasses import replace

    with run(replace(demo, address="http://127.0.0.1:1"), folder, program, feed_token) as application:
        assert application.get("/report", headers={"authorization": "Bearer rs_x"}).status_code == 503


@pytest.mark.parametrize(("folder", "program"), [("fastapi", FASTAPI), ("django", DJANGO)])
def test_a_suspended_tenant_gives_403(demo: Demo, feed_token: str, folder: str, program: str) -> None:
    from dataclasses import replace

    with ThreadingHTTPServer(("127.0.0.1", 0), Suspended) as service:
        threading.Thread(target=service.serve_forever).start()
        try:
            with run(replace(demo, address=f"http://127.0.0.1:{service.server_port}"), folder, program, feed_token) as application:
                response = application.get("/report", headers={"authorization": "Bearer rs_x"})
                assert (response.status_code, response.json()) == (403, {"detail": "This tenant is suspended."})
        finally:
            service.shutdown()


class Suspended(BaseHTTPRequestHandler):
    """Answers as Rolecall does for a tenant that is suspended."""

    def do_GET(self) -> None:
        body = b'{"status":403,"code":"tenant-suspended","detail":"This tenant is suspended."}'
        self.send_response(403)
        self.send_header("content-type", "application/problem+json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_host_does_not_choose_the_tenant(demo: Demo, owner: Client, feed_token: str) -> None:
    with run(demo, "fastapi", FASTAPI, feed_token) as application:
        cookie = "; ".join(owner._cookies)
        for host, status in {"app.example": 200, "app.example:8080": 200, "[::1]:8080": 200, "x/globex?": 400, "x#": 400, "x@y": 400, "x\\y": 400}.items():
            assert application.get("/report", headers={"cookie": cookie, "host": host}).status_code == status


def ends_within_a_second(application: httpx.Client, path: str, headers: dict[str, str]) -> None:
    """Checks that no request that begins a second later is accepted."""
    began = time.monotonic()

    def is_refused() -> bool:
        late = time.monotonic() - began >= 1
        status = application.get(path, headers=headers).status_code
        assert status == 401 or not late
        return status == 401

    until(is_refused)
