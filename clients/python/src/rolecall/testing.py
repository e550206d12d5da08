"""Starts Rolecall for the tests of an application. Each test gets a new tenant, so tests can run at the same
time and in any order.

    @pytest.fixture(scope="session")
    def rolecall():
        with Server() as server:
            yield server

    def test_approve(rolecall):
        clerk = rolecall.tenant().user("shop/invoices:approve", reach=["Sales"])
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ._core import etag
from .client import Client

PASSWORD = "a long password of the tests"
"""The password of all users of the tests."""

PUBLIC_URL = "http://localhost"
"""With a loopback address, cookies have no attribute Secure, so tests over plain HTTP receive them."""

STOP_LIMIT = 60  # seconds


@dataclass
class User:
    """An active user with a session. The email address and PASSWORD sign in."""

    id: str
    email: str
    client: Client
    """Has a session of the user: client.token is the token."""


class Tenant:
    """A tenant for one test."""

    def __init__(self, server: Server, name: str) -> None:
        self.name = name
        self.operator = Client(server.url, name, token=server.operator_key)
        """Acts as an owner, without step-up."""
        self._server = server
        email = f"{_random('owner')}@example.com"
        with Client(server.url, token=server.operator_key) as operator:
            made = operator.operator_create_tenant({"name": name, "owner": {"email": email, "name": "Test Owner"}, "delivery": "return"})
        self.owner = User(made["owner"]["id"], email, self._accept(made["invitation"].get("token", "")))

    def user(self, *permissions: str, name: str = "Test User", department: str | None = None, reach: Sequence[str] | None = None) -> User:
        """Creates an active user with a session. The permissions are those of a new role that the user gets,
        in the departments of reach, or in the whole tenant."""
        email = f"{_random('user')}@example.com"
        user = self.operator.create_user({"email": email, "name": name, "department": department})
        if permissions:
            role = self.operator.create_role({"name": _random("Role"), "permissions": list(permissions)})
            self.operator.assign_role(user["id"], role["id"], {} if reach is None else {"reach": {"departments": list(reach)}})
        invitation = self.operator.invite_user(user["id"], {"delivery": "return"})
        return User(user["id"], email, self._accept(invitation.get("token", "")))

    def _accept(self, token: str) -> Client:
        """Sets the password of an invited user, and returns a client with the session of the user."""
        client = Client(self._server.url, self.name)
        client.accept_invitation({"token": token, "password": PASSWORD, "transport": "bearer"})
        return client


class Server:
    """A running Rolecall with an own SQLite database, in a temporary folder. It listens on a free port of this
    machine. program is the file of the program. The default is the variable ROLECALL_PROGRAM, or rolecall in
    the PATH. flags are further flags of rolecall serve."""

    def __init__(self, program: str | None = None, flags: Sequence[str] = ()) -> None:
        self._program = program or os.environ.get("ROLECALL_PROGRAM") or "rolecall"
        self._folder = Path(tempfile.mkdtemp(prefix="rolecall-test-"))
        self._tenants: list[str] = []
        self.mailbox = self._folder / "mail"
        """The folder with a file for each mail."""
        try:
            self._run("migrate")
            self.operator_key: str = json.loads(self._run("operator-key", "create", "Tests", "--json"))["key"]
            """Has the scope all."""
            words = ["serve", "--listen", "127.0.0.1:0", "--public-url", PUBLIC_URL, "--mailbox", str(self.mailbox), *flags]
            self._process = subprocess.Popen(self._line(words), stderr=subprocess.PIPE, text=True, cwd=self._folder)
            self.url = self._await_address()
            """For example http://127.0.0.1:41234."""
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    def tenant(self) -> Tenant:
        """Creates a tenant with an owner."""
        tenant = Tenant(self, _random("test"))
        self._tenants.append(tenant.name)
        return tenant

    def reset(self) -> None:
        """Deletes the tenants and the mails of all tests so far. New tenants do not need it. Call it if a
        process runs tests for a long time, or before a test that reads the changes of all tenants."""
        names, self._tenants = self._tenants, []
        with Client(self.url, token=self.operator_key) as operator:
            for name in names:
                operator.operator_delete_tenant(name, if_match=etag(operator.operator_get_tenant(name)))
        for mail in self.mailbox.glob("*"):
            mail.unlink()

    def stop(self) -> None:
        """Stops the program, and removes its data."""
        self._process.terminate()
        self._process.wait(STOP_LIMIT)
        self._reader.join()
        shutil.rmtree(self._folder)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _line(self, words: Sequence[str]) -> list[str]:
        return [self._program, *words, "--database", str(self._folder / "rolecall.db")]

    def _run(self, *words: str) -> str:
        done = subprocess.run(self._line(words), capture_output=True, text=True, cwd=self._folder)
        if done.returncode != 0:
            raise RuntimeError(f"rolecall {' '.join(words)}: {done.stderr}")
        return done.stdout

    def _await_address(self) -> str:
        """Waits until the program serves, and returns its address. A thread reads the rest of the log, so that the pipe never fills."""
        log = self._process.stderr
        assert log is not None
        text = ""
        for line in log:
            text += line
            if '"msg":"serving"' in line:
                self._reader = threading.Thread(target=log.read, daemon=True)
                self._reader.start()
                return f"http://{json.loads(line)['address']}"
        raise RuntimeError(f"rolecall serve ended:\n{text}")


def _random(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(8)}"
