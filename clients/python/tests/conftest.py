"""Starts the program on each store, and repeats files that failed if ROLECALL_TEST_REPEAT is 1."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import rolecall.principals
from rolecall import Client

ROOT = Path(__file__).parents[3]
PROGRAM = Path(os.environ.get("ROLECALL_PROGRAM", Path(__file__).parents[1] / ".venv" / "rolecall"))
POSTGRES = os.environ.get("ROLECALL_TEST_POSTGRES", "")
# The decorator of tests that depend on the program, but not on its store.
ON_ONE_STORE = pytest.mark.parametrize("demo", ["sqlite"], indirect=True)
STORES = ["sqlite"] + (["postgres"] if POSTGRES else [])
PASSWORD = "a long enough password of theirs"
PATIENCE = 60 * float(os.environ.get("ROLECALL_TEST_PATIENCE") or 1)  # seconds after which a wait counts as hanging
MOST_FAILURES = 5  # files that are repeated

rolecall.principals.LOAD_TIMEOUT = PATIENCE  # a slow machine is not an unreachable service


def until(found: Callable[[], bool]) -> None:
    """Calls found until it returns true."""
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end, "waited too long"
        threading.Event().wait(0.005)


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
        return Client(self.address, self.tenant, **{"http": httpx.Client(timeout=PATIENCE), **options})

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
        assert process.wait(PATIENCE) == 0, (folder / "log").read_text()
    assert '"level":"ERROR"' not in (folder / "log").read_text()


@pytest.fixture(scope="module")
def owner(demo: Demo) -> Client:
    return demo.owner()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives each store its own process, so that each store needs only one program."""
    for item in items:
        store = getattr(item, "callspec").params.get("demo") if hasattr(item, "callspec") else None
        if store is not None:
            item.add_marker(pytest.mark.xdist_group(store))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Runs each file that failed once more, alone, if ROLECALL_TEST_REPEAT is 1. What passes then does not fail the run."""
    reporter: Any = session.config.pluginmanager.getplugin("terminalreporter")
    if hasattr(session.config, "workerinput") or reporter is None:
        return
    failures = [report for kind in ("failed", "error") for report in reporter.stats.get(kind, [])]
    files = sorted({report.nodeid.split("::")[0] for report in failures})
    again = files if os.environ.get("ROLECALL_TEST_REPEAT") == "1" and len(files) <= MOST_FAILURES else []
    fails = {file: runs_again(session.config, file) if file in again else True for file in files}
    lines = []
    for report in failures:
        file, _, name = report.nodeid.partition("::")
        lines += [f"{'FAILED' if fails[file] else 'FLAKY'} {os.path.relpath(session.config.rootpath / file)} {name}", *report.longreprtext.splitlines()[-30:]]
    failed = sum(fails[report.nodeid.split("::")[0]] for report in failures)
    passed = len(reporter.stats.get("passed", [])) + len(failures) - failed
    lines.append(f"{passed} passed, {failed} failed, {len(reporter.stats.get('skipped', []))} skipped")
    session.config.add_cleanup(lambda: print(*lines, sep="\n"))
    if files and failed == 0:
        session.exitstatus = pytest.ExitCode.OK


def runs_again(config: pytest.Config, file: str) -> bool:
    """Runs the file, and reports whether it fails."""
    line = [sys.executable, "-m", "pytest", "-c", str(config.inipath), "--rootdir", str(config.rootpath), str(config.rootpath / file)]
    return subprocess.run(line, env={**os.environ, "ROLECALL_TEST_REPEAT": ""}, capture_output=True).returncode != 0
