"""The code of docs/guides/python.md, run as it is written, except for addresses and the password."""

from __future__ import annotations

import ast
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from conftest import ON_ONE_STORE, PATIENCE, ROOT, Demo

GUIDE = (ROOT / "docs" / "guides" / "python.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.M | re.S)


def with_function(program: str, function: str) -> str:
    """Returns the program with the function instead of the one with the same name."""
    (new,) = ast.parse(function).body
    assert isinstance(new, ast.AsyncFunctionDef)
    (old,) = [node for node in ast.parse(program).body if isinstance(node, ast.AsyncFunctionDef) and node.name == new.name]
    lines = program.splitlines(keepends=True)
    lines[old.decorator_list[0].lineno - 1 : old.end_lineno] = [function]
    return "".join(lines)


@ON_ONE_STORE
def test_the_guide(demo: Demo, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        application = f"127.0.0.1:{free.getsockname()[1]}"
    places = {"127.0.0.1:8080": demo.address.removeprefix("http://"), "--port 8090": f"--port {application.split(':')[1]}", "127.0.0.1:8090": application}
    places["5EQW54C-VOG2KQE-JJXKSBE-IVDAI"] = demo.password

    def here(text: str) -> str:
        for written, place in places.items():
            text = text.replace(written, place)
        return text

    setup, main, revoke, sign_in = blocks("python")
    assert main == (Path(__file__).parents[1] / "examples" / "fastapi" / "main.py").read_text()
    for name, text in (("setup.py", setup), ("main.py", main), ("revoke.py", revoke), ("with_cookie.py", with_function(main, sign_in))):
        (tmp_path / name).write_text(here(text))
    script = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + here("".join(blocks("bash")))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=10 * PATIENCE)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{(tmp_path / 'shop.log').read_text() if (tmp_path / 'shop.log').exists() else ''}"
