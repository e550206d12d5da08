"""The package, installed from its wheel into an empty environment."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

from conftest import ON_ONE_STORE, ROOT, Demo

FOLDER = Path(__file__).parents[1]
PROGRAM = """
import importlib.metadata, importlib.resources, sys
import rolecall
assert importlib.resources.files("rolecall").joinpath("py.typed").is_file()
assert importlib.metadata.metadata("rolecall")["License-Expression"] == "Apache-2.0"
assert "Apache License" in importlib.metadata.distribution("rolecall").read_text("licenses/LICENSE")
urls = importlib.metadata.metadata("rolecall").get_all("Project-URL")
assert any(url == "Repository, https://github.com/rolecall/rolecall" for url in urls), urls
address, tenant, email, password = sys.argv[1:]
with rolecall.Client(address, tenant) as client:
    client.login({"email": email, "password": password})
    assert rolecall.can(client.get_session(), "shop/invoices:approve")
    print(sum(1 for _ in client.iter_users(limit=50)))
"""


def test_the_readme_works_on_a_package_registry() -> None:
    readme = (FOLDER / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert links and all(link.startswith("https://") for link in links), links
    for path in (link.removeprefix("https://github.com/rolecall/rolecall/blob/main/").partition("#")[0] for link in links if "/rolecall/rolecall/blob/" in link):
        assert (ROOT / path).exists(), path
    (example,) = re.findall(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    assert example == (FOLDER / "examples" / "readme.py").read_text()  # which mypy and pyright check


@ON_ONE_STORE
def test_the_wheel_works_in_an_empty_environment(demo: Demo, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, FOLDER], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    line = [str(python), "-I", "-c", PROGRAM, demo.address, demo.tenant, demo.email, demo.password]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 200, done.stderr
