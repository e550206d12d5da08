"""Starts the program on each store."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rolecall import Client

ROOT = Path(__file__).parents[3]
PROGRAM = Path(os.environ.get("ROLECALL_PROGRAM", Path(__file__).parents[1] / ".venv" / "rolecall"))
POSTGRES = os.environ.get("ROLECALL_TEST_POSTGRES", "")
STORES = ["sqlite"] + (["postgres"] if POSTGRES else [])
PASSWORD = "a long enough password of theirs"


def random_name(prefix: str) -> str:
    return f"{prefix}-{secrets.token_hex(4)}"


@dataclass
class Demo:
    """A running program with demo data."""

    address: str
    tenant: str
    email: str
    password: str
    database: str
    folder: Path

    def command(self, *words: str, stdin: str = "") -> str:
        """Runs a command of the program on the same database, and returns its output."""
        done = subprocess.run([PROGRAM, *words, "--database", self.database], input=stdin, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def client(self, **options: Any) -> Client:
        return Client(self.address, self.tenant, **options)

    def owner(self) -> Client:
        """Returns a client with a new session of the owner."""
        client = self.client()
        client.login({"email": self.email, "password": self.password})
        client.confirm({"password": self.password})
        return client

    def user(self, owner: Client, *permissions: str, departments: list[str] | None = None) -> tuple[str, str]:
        """Creates a user with a password and a role, and returns the id and the address."""
        email = f"{random_name('user')}@demo.example"
        user = owner.create_user({"email": email, "name": "A Person"})
        role = owner.create_role({"name": random_name("Role"), "permissions": list(permissions)})
        owner.assign_role(user["id"], role["id"], {"reach": {"departments": departments}} if departments else {})
        self.command("user", "set-password", "--tenant", self.tenant, "--email", email, "--password-stdin", stdin=PASSWORD)
        return user["id"], email

    def program_token(self, owner: Client, *permissions: str) -> tuple[str, str]:
        """Creates a service account with a role, and returns its id and an API token."""
        account = owner.create_service_account({"name": random_name("Program")})
        role = owner.create_role({"name": random_name("Role"), "permissions": list(permissions)})
        owner.assign_service_account_role(account["id"], role["id"], {})
        token = owner.create_service_account_token(account["id"], {"name": "Test", "permissions": list(permissions), "expiresAt": later(30)})
        return account["id"], token["token"]


def later(days: float) -> str:
    from datetime import datetime, timedelta, timezone

    return (datetime.now(timezone.utc) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def own_database() -> str:
    """Creates a PostgreSQL database and a role that owns it, and returns its URL for this role."""
    name = random_name("python").replace("-", "_")
    subprocess.run(["psql", POSTGRES, "-q", "-v", "ON_ERROR_STOP=1", "-c", f"create role {name} login", "-c", f"create database {name} owner {name}"], check=True)
    return re.sub(r"^postgres(?:ql)?://(?:[^@/]*@)?([^/?]*)(?:/[^?]*)?", rf"postgres://{name}@\1/{name}", POSTGRES)


@pytest.fixture(scope="session", params=STORES)
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("rolecall")
    database = str(folder / "demo.db") if request.param == "sqlite" else own_database()
    line = [str(PROGRAM), "serve", "--demo", "--json", "--listen", "127.0.0.1:0", "--database", database, "--mailbox", str(folder / "mail")]
    with open(folder / "log", "wb") as log, subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            part = process.stdout.readline()
            assert part, (folder / "log").read_text()
            text += part
        threading.Thread(target=process.stdout.read, daemon=True).start()  # so that the pipe never fills
        started = json.loads(text)
        yield Demo(started["address"], started["tenant"], started["email"], started["password"], database, folder)
        process.terminate()
        assert process.wait(60) == 0, (folder / "log").read_text()
    assert '"level":"ERROR"' not in (folder / "log").read_text()


@pytest.fixture(scope="module")
def owner(demo: Demo) -> Client:
    return demo.owner()
