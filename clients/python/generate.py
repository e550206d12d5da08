"""Writes the types and the methods of all operations of the OpenAPI document.

    python generate.py           writes src/rolecall/models.py and src/rolecall/_operations.py
    python generate.py --check   fails if they are not current
"""

from __future__ import annotations

import hashlib
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
DOCUMENT = HERE.parent.parent / "openapi" / "openapi.yaml"
PACKAGE = HERE / "src" / "rolecall"
NOTE = f"# Generated from openapi/openapi.yaml by generate.py. Do not edit. SHA-256 of the document:\n# {hashlib.sha256(DOCUMENT.read_bytes()).hexdigest()}\n"
METHODS = ("get", "post", "put", "patch", "delete")
# Operations whose name without the controller is also that of another operation.
RENAMED = {"AuthsController_listConnections": "list_offered_connections"}

Json = dict[str, Any]


def snake(name: str) -> str:
    """Returns the name in the form that Python uses, such as role_id for roleId."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
    return text + "_" if keyword.iskeyword(text) else text


def method_name(operation_id: str) -> str:
    """Returns the name of the method for an operation, such as create_user for
    UsersController_createUser. Operations of operators begin with operator_, and those that start a
    job are start_…_job."""
    if operation_id in RENAMED:
        return RENAMED[operation_id]
    controller, _, name = operation_id.partition("_")
    if controller == "JobsController" and "Job" not in name:
        return f"start_{snake(name)}_job"
    return ("operator_" if controller == "OperatorController" else "") + snake(name)


def sentence(text: str) -> str:
    return " ".join(text.replace("\\", "").replace('"', "'").split())


def literal(values: list[Any]) -> str:
    if len(values) > 12:  # types of events: too many to be readable in a signature
        return "str"
    return "Literal[" + ", ".join(f'"{value}"' for value in values) + "]"


def type_of(schema: Json) -> str:
    """Returns the Python type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if "oneOf" in schema:
        return " | ".join(type_of(one) for one in schema["oneOf"])
    if "enum" in schema:
        return literal(schema["enum"])
    kinds = schema.get("type", "any")
    if isinstance(kinds, list):
        return " | ".join(type_of({**schema, "type": kind}) for kind in kinds)
    if kinds == "array":
        return f"list[{type_of(schema['items'])}]"
    if kinds == "object":
        value = schema.get("additionalProperties", True)
        return f"dict[str, {type_of(value) if isinstance(value, dict) else 'Any'}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}.get(kinds, "Any")


def members(schema: Json) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", [])
    for name, member in schema.get("properties", {}).items():
        kind = type_of(member)
        yield name, kind if name in required else f"NotRequired[{kind}]", sentence(member.get("description", ""))


def model(name: str, schema: Json) -> str:
    description = sentence(schema.get("description", ""))
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{name}: TypeAlias = {type_of(schema)!r}\n\"\"\"{description}\"\"\"\n"
    if any(keyword.iskeyword(member) for member in schema["properties"]):
        lines = [f'    "{member}": "{kind}",  # {text}' for member, kind, text in members(schema)]
        return f'{name} = TypedDict("{name}", {{\n' + "\n".join(lines) + f'\n}})\n"""{description}"""\n'
    text = f'class {name}(TypedDict):\n    """{description}"""\n'
    for member, kind, about in members(schema):
        text += f'\n    {member}: {kind}\n    """{about}"""\n'
    return text


def models(document: Json) -> str:
    head = NOTE + '"""The objects of the API. At run time, they are dictionaries."""\n\nfrom __future__ import annotations\n\n'
    head += "from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict\n\n"
    head += "if TYPE_CHECKING:\n    from typing_extensions import NotRequired\n\n\n"
    return head + "\n\n".join(model(name, schema) for name, schema in document["components"]["schemas"].items())


class Operation:
    """An operation of the document, as a method."""

    def __init__(self, document: Json, method: str, path: str, spec: Json) -> None:
        self.method, self.path, self.spec = method.upper(), path, spec
        self.name = method_name(spec["operationId"])
        self.parameters = [resolve(document, parameter) for parameter in spec.get("parameters", [])]
        self.queries = [p for p in self.parameters if p["in"] == "query"]
        self.headers = {p["name"].lower() for p in self.parameters if p["in"] == "header"}
        self.body = spec.get("requestBody", {}).get("content", {})
        self.needs_body = bool(spec.get("requestBody", {}).get("required"))
        answers = [resolve(document, answer) for status, answer in spec["responses"].items() if status[0] == "2"]
        contents = [answer["content"] for answer in answers if "content" in answer]
        self.answer = "None" if not contents else "bytes"
        if contents and "application/json" in contents[0]:
            self.answer = type_of(contents[0]["application/json"]["schema"])
        self.item = ""
        if any(p["name"] == "cursor" for p in self.queries):
            page = document["components"]["schemas"][self.answer]
            self.item = type_of(page["properties"]["items"]["items"])

    def arguments(self, without: tuple[str, ...] = ()) -> str:
        found = ["self"] + [f"{snake(name)}: str" for name in re.findall(r"\{(\w+)\}", self.path)]
        if "application/json" in self.body:
            kind = type_of(self.body["application/json"]["schema"])
            found.append(f"body: {kind}" if self.needs_body else f"body: {kind} | None = None")
        elif self.body:
            found += ["body: bytes", f"content_type: {literal(sorted(self.body))}"]
        options = []
        for p in self.queries:
            if p["name"] not in without:
                kind = type_of(p["schema"])
                options.append(f"{snake(p['name'])}: {kind}" if p.get("required") else f"{snake(p['name'])}: {kind} | None = None")
        options += [f"{snake(h)}: str | None = None" for h in ("idempotency-key", "if-match") if h in self.headers]
        return ", ".join(found + (["*", *sorted(options, key=lambda o: "=" in o)] if options else []))

    def call(self, without: tuple[str, ...] = ()) -> str:
        path = re.sub(r"\{(\w+)\}", lambda m: "{quote(" + snake(m[1]) + ")}", self.path)
        quoted = ("f" if "{" in path else "") + f'"{path}"'
        parts = [f'"{self.method}"', quoted]
        queries = [f'"{p["name"]}": {snake(p["name"])}' for p in self.queries if p["name"] not in without]
        if queries:
            parts.append("query={" + ", ".join(queries) + "}")
        if "application/json" in self.body:
            parts.append("body=body")
        elif self.body:
            parts.append("content=body, content_type=content_type")
        if "idempotency-key" in self.headers:
            parts.append("key=idempotency_key or new_key()")
        if "if-match" in self.headers:
            parts.append("if_match=if_match")
        return ", ".join(parts)

    def write(self, prefix: str, wait: str, iterator: str) -> str:
        about = sentence(self.spec.get("description") or self.spec["summary"])
        send = {"None": "_send_none", "bytes": "_send_bytes"}.get(self.answer, "_send_json")
        cast = f"cast({self.answer!r}, {wait}self.{send}({self.call()}))"
        statement = f"{wait}self.{send}({self.call()})" if self.answer == "None" else f"return {cast if send == '_send_json' else wait + f'self.{send}({self.call()})'}"
        text = f'    {prefix}def {self.name}({self.arguments()}) -> {self.answer}:\n        """{about}"""\n        {statement}\n'
        if self.item:
            skip = ("cursor", "count")
            name = re.sub(r"(^|_)(list|find)_", r"\1iter_", self.name)
            text += f'\n    def {name}({self.arguments(skip)}) -> {iterator}[{self.item}]:\n'
            text += f'        """Yields the items of all pages of {self.name}."""\n'
            text += f"        return self._iterate({self.call(skip)})\n"
        return text


def resolve(document: Json, part: Json) -> Json:
    while "$ref" in part:
        place: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            place = place[name]
        part = place
    return part


def operations_of(document: Json) -> list[Operation]:
    return [Operation(document, method, path, methods[method]) for path, methods in document["paths"].items() for method in METHODS if method in methods]


def operations(document: Json) -> str:
    every = operations_of(document)
    names = sorted(set(re.findall(r"\b[A-Z]\w+", " ".join(f"{o.arguments()} {o.answer} {o.item}" for o in every))) & set(document["components"]["schemas"]))
    text = NOTE + '"""A method for each operation of the API."""\n\nfrom __future__ import annotations\n\n'
    text += "from collections.abc import AsyncIterator, Iterator\nfrom typing import Literal, cast\n\nfrom ._core import AsyncSender, Sender, new_key, quote\n"
    text += "from .models import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"
    for name, base, about, prefix, wait, iterator in (
        ("Operations", "Sender", "The operations of the API, for programs without asyncio.", "", "", "Iterator"),
        ("AsyncOperations", "AsyncSender", "The operations of the API, for asyncio.", "async ", "await ", "AsyncIterator"),
    ):
        text += f'\n\nclass {name}({base}):\n    """{about}"""\n\n' + "\n".join(o.write(prefix, wait, iterator) for o in every)
    names = re.findall(r"^    def (\w+)", text.partition("class AsyncOperations")[0], re.M)
    if doubled := {name for name in names if names.count(name) > 1}:
        sys.exit(f"several operations have the names {doubled}: rename one in RENAMED")
    return text


def main() -> None:
    document = yaml.load(DOCUMENT.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for file, text in ((PACKAGE / "models.py", models(document)), (PACKAGE / "_operations.py", operations(document))):
        if "--check" not in sys.argv:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            sys.exit(f"{file.name} is not current: run python generate.py in clients/python")


if __name__ == "__main__":
    main()
