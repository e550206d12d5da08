"""The helper for tests of applications, and the guides that use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, PROGRAM, ROOT

from rolecall import Client, NotFound, RolecallError, can
from rolecall.testing import PASSWORD, Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(str(PROGRAM), ["--metrics-listen", "127.0.0.1:0"]) as server:
        yield server
    assert not server.mailbox.parent.exists()


def test_tenants_are_separate(server: Server) -> None:
    one, other = server.tenant(), server.tenant()
    user = one.user("shop/invoices:approve", name="Grace Hopper", department="Sales", reach=["Sales"])
    session = user.client.get_session()
    assert session["principal"]["name"] == "Grace Hopper"
    assert can(session, "shop/invoices:approve", "Sales") and not can(session, "shop/invoices:approve", "Design")
    Client(server.url, one.name).login({"email": user.email, "password": PASSWORD})
    with pytest.raises(NotFound):
        other.operator.get_user(user.id)
    for tenant in (one, other):
        assert can(tenant.owner.client.get_session(), "users:delete")
    assert one.user().client.get_session()["permissions"] == []


def test_reset(server: Server) -> None:
    tenant = server.tenant()
    server.mailbox.mkdir(exist_ok=True)
    (server.mailbox / "mail.eml").touch()
    server.reset()
    with pytest.raises(RolecallError):
        tenant.owner.client.get_session()
    assert list(server.mailbox.iterdir()) == []
    server.tenant().owner.client.get_session()


def test_failed_start() -> None:
    with pytest.raises(FileNotFoundError):
        Server("no-such-program")
    with pytest.raises(RuntimeError, match="public-url"):
        Server(str(PROGRAM), ["--public-url", "nonsense"])


@pytest.mark.parametrize("guide, names", [("testing.md", ["app.py", "test_app.py"]), ("fastapi-tenants.md", ["main.py", "serve.py", "test_main.py"])])
def test_guides(guide: str, names: list[str], tmp_path: Path) -> None:
    """Runs the tests of the guide as they are written, and checks the types of its code."""
    text = (ROOT / "docs" / "guides" / guide).read_text()
    for name, code in zip(names, re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S), strict=True):
        (tmp_path / name).write_text(code)
    environment = {**os.environ, "ROLECALL_PROGRAM": str(PROGRAM)}
    for line in (["pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider", names[-1]], ["mypy", "--strict", "--config-file", os.devnull, *names]):
        done = subprocess.run([sys.executable, "-m", *line], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=5 * PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
