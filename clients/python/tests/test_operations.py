"""Calls each operation of the OpenAPI document on the program, and compares the response with its
schema."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import PASSWORD, ROOT, Demo, later, random_name, until
from jsonschema import Draft202012Validator

from rolecall import AsyncClient, Client, Problem, etag

sys.path.insert(0, str(Path(__file__).parents[1]))
import generate  # noqa: E402

DOCUMENT = yaml.load((ROOT / "openapi" / "openapi.yaml").read_text(), Loader=yaml.CSafeLoader)
OPERATIONS = {operation.name: operation for operation in generate.operations_of(DOCUMENT)}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000010000000100802000000909168360000001549444154789c6360601805a360148c82510000000410000101e3d1b90000000049454e44ae426082"
)


class World:
    """What the operations need: objects of the tenant, made for one operation."""

    def __init__(self, demo: Demo, operator: Client) -> None:
        self.demo, self.owner, self.operator = demo, demo.owner(), operator

    def user(self, **more: Any) -> str:
        body: Any = {"email": f"{random_name('user')}@demo.example", "name": "A Person", **more}
        return self.owner.create_user(body)["id"]

    def own_user(self) -> str:
        return self.owner.get_session()["user"]["id"]

    def role(self) -> str:
        return self.owner.create_role({"name": random_name("Role"), "permissions": ["users:read"]})["id"]

    def group(self) -> str:
        return self.owner.create_group({"name": random_name("Group")})["id"]

    def group_role(self) -> tuple[str, str]:
        group, role = self.group(), self.role()
        self.owner.assign_group_role(group, role)
        return group, role

    def member(self) -> tuple[str, str]:
        group, user = self.group(), self.user()
        self.owner.add_group_user(group, user)
        return group, user

    def account(self) -> str:
        return self.owner.create_service_account({"name": random_name("Program")})["id"]

    def webhook(self) -> Any:
        account = self.account()
        role = self.owner.create_role({"name": random_name("Role"), "permissions": ["changes:read"]})["id"]
        self.owner.assign_service_account_role(account, role, {})
        return self.owner.create_webhook({"url": "https://hooks.example.com/x", "serviceAccountId": account})

    def operator_webhook(self) -> str:
        return self.operator.operator_create_webhook({"url": "https://hooks.example.com/x"})["id"]

    def token(self, account: str) -> str:
        body: Any = {"name": "Test", "permissions": ["users:read"], "expiresAt": later(30)}
        return self.owner.create_service_account_token(account, body)["id"]

    def own_token(self) -> str:
        return self.owner.create_user_token(self.own_user(), self.token_body())["id"]

    def token_body(self) -> Any:
        return {"name": "Test", "permissions": ["users:read"], "expiresAt": later(30)}

    def await_jobs(self) -> None:
        """Returns when no job runs, because a tenant can have only some at once."""
        until(lambda: all(job["endedAt"] is not None for job in self.owner.iter_jobs()))

    def job(self) -> str:
        self.await_jobs()
        return self.owner.start_suspend_users_job({"users": {"q": "nobody has this name"}})["id"]

    def suspended(self) -> str:
        id = self.user()
        self.owner.suspend_user(id)
        return id

    def deleted(self) -> str:
        id = self.user()
        self.owner.delete_user(id)
        return id

    def invited(self) -> str:
        return self.user(invite=True)

    def assigned(self) -> tuple[str, str]:
        user, role = self.user(), self.role()
        self.owner.assign_role(user, role)
        return user, role

    def account_assigned(self) -> tuple[str, str]:
        account, role = self.account(), self.role()
        self.owner.assign_service_account_role(account, role, {})
        return account, role

    def tenant(self) -> str:
        name = random_name("tenant")
        self.operator.operator_create_tenant({"name": name, "owner": {"email": "o@x.example", "name": "The Owner"}})
        return name

    def suspended_tenant(self) -> str:
        name = self.tenant()
        self.operator.operator_suspend_tenant(name)
        return name

    def tenant_tag(self, name: str) -> str | None:
        return etag(self.operator.operator_get_tenant(name))

    def deleted_tenant(self) -> str:
        name = self.tenant()
        self.operator.operator_delete_tenant(name, if_match=self.tenant_tag(name))
        return name

    def connection_body(self) -> Any:
        return {"name": random_name("Connection"), "issuer": f"https://{random_name('login')}.example", "clientId": "rolecall", "clientSecret": "a client secret"}

    def connection(self) -> str:
        return self.owner.create_connection(self.connection_body())["id"]

    def directory(self) -> str:
        return self.owner.create_directory({"name": random_name("Directory")})["id"]

    def directory_token(self) -> tuple[str, str]:
        directory = self.directory()
        return directory, self.owner.create_directory_token(directory, self.directory_token_body())["id"]

    def directory_token_body(self) -> Any:
        return {"name": "Provider", "expiresAt": later(30)}

    def event(self) -> str:
        self.owner.get_checkpoint()
        return self.owner.list_events(limit=1)["items"][0]["id"]

    def size(self) -> int:
        """Returns the size of the audit log, which has a checkpoint some seconds after the first event."""
        until(lambda: self.owner.get_checkpoint()["size"] > 0)
        return self.owner.get_checkpoint()["size"]

    def invitation(self) -> str:
        return self.link("invite_user", self.user())

    def link(self, name: str, user: str) -> str:
        as_operator = Client(self.demo.address, self.demo.tenant, token=self.operator.token)
        return str(getattr(as_operator, name)(user, {"delivery": "return"})["token"])

    def person(self) -> tuple[str, str]:
        return self.demo.user(self.owner, "users:read")

    def session(self) -> tuple[str, str]:
        id, email = self.person()
        self.demo.client().login({"email": email, "password": PASSWORD})
        return id, self.owner.list_user_sessions(id)["items"][0]["id"]


Arguments = tuple[list[Any], dict[str, Any]]


def use(*arguments: Any, **options: Any) -> Arguments:
    return list(arguments), options


def nothing(_: World) -> Arguments:
    return use()


NOBODY = "019d83e6-1ef1-7004-a1b2-3c4d5e6f7a44"

# The arguments of each operation. Operations that are not here have none.
ARGUMENTS: dict[str, Callable[[World], Arguments]] = {
    "list_access": lambda w: use(permission="users:erase"),
    "check": lambda w: use(permission="users:read", department="Sales"),
    "check_all": lambda w: use({"checks": [{"permission": "shop/invoices:approve"}]}),
    "confirm": lambda w: use({"password": w.demo.password}),
    "accept_invitation": lambda w: use({"token": w.invitation(), "password": PASSWORD}),
    "login": lambda w: use({"email": w.demo.email, "password": w.demo.password}),
    "change_password": lambda w: use({"currentPassword": PASSWORD, "newPassword": PASSWORD + "."}),
    "request_password_reset": lambda w: use({"email": w.demo.email}),
    "reset_password": lambda w: use({"token": w.link("send_password_reset", w.person()[0]), "password": PASSWORD + "."}),
    "get_session": lambda w: use(touch=False),
    "list_changes": lambda w: use(wait=0, limit=1),
    "list_events": lambda w: use(type="user.created", limit=2, from_="2020-01-01T00:00:00Z"),
    "get_consistency": lambda w: use(from_=w.size()),
    "get_event_proof": lambda w: use(w.event()),
    "export_events": lambda w: use(type="role.created"),
    "export_role_users": lambda w: use(w.role()),
    "export_users": lambda w: use(department="Sales"),
    "start_assign_role_job": lambda w: use({"users": {"q": "nobody has this name"}, "roleId": w.role()}),
    "start_unassign_role_job": lambda w: use({"users": {"q": "nobody has this name"}, "roleId": w.role()}),
    "start_resume_users_job": lambda w: use({"users": {"q": "nobody has this name"}}),
    "start_suspend_users_job": lambda w: use({"users": {"q": "nobody has this name"}}),
    "get_job": lambda w: use(w.job()),
    "list_job_results": lambda w: use(w.job()),
    "operator_list_changes": lambda w: use(limit=1),
    "operator_get_consistency": lambda w: use(from_=w.operator.operator_get_checkpoint()["size"]),
    "operator_get_event_proof": lambda w: use(w.operator.operator_list_events(limit=1)["items"][0]["id"]),
    "operator_create_tenant": lambda w: use({"name": random_name("tenant"), "owner": {"email": "o@x.example", "name": "The Owner"}}),
    "operator_delete_tenant": lambda w: use(name := w.tenant(), if_match=w.tenant_tag(name)),
    "operator_get_tenant": lambda w: use(w.tenant()),
    "operator_update_tenant": lambda w: use(w.tenant(), {"displayName": "New Name"}),
    "operator_restore_tenant": lambda w: use(w.deleted_tenant(), {"reason": "test"}),
    "operator_resume_tenant": lambda w: use(w.suspended_tenant()),
    "operator_suspend_tenant": lambda w: use(w.tenant()),
    "operator_create_webhook": lambda w: use({"url": "https://hooks.example.com/x"}),
    "operator_delete_webhook": lambda w: use(w.operator_webhook()),
    "operator_get_webhook": lambda w: use(w.operator_webhook()),
    "operator_update_webhook": lambda w: use(w.operator_webhook(), {"enabled": False}),
    "operator_list_deliveries": lambda w: use(w.operator_webhook()),
    "operator_replay_webhook": lambda w: use(w.operator_webhook(), {"from": later(-1), "to": later(0)}),
    "operator_rotate_secret": lambda w: use(w.operator_webhook()),
    "operator_skip_items": lambda w: use(w.operator_webhook(), {"all": True}),
    "operator_test_webhook": lambda w: use(w.operator_webhook()),
    "operator_find_users": lambda w: use(email=w.demo.email, limit=2),
    "find_connection": lambda w: use({"email": w.demo.email}),
    "create_connection": lambda w: use(w.connection_body()),
    "get_connection": lambda w: use(w.connection()),
    "update_connection": lambda w: use(w.connection(), {"name": random_name("Connection")}),
    "delete_connection": lambda w: use(w.connection()),
    "test_connection": lambda w: use(w.connection()),
    "create_directory": lambda w: use({"name": random_name("Directory")}),
    "get_directory": lambda w: use(w.directory()),
    "update_directory": lambda w: use(w.directory(), {"paused": True}),
    "delete_directory": lambda w: use(w.directory()),
    "list_directory_requests": lambda w: use(w.directory()),
    "list_directory_tokens": lambda w: use(w.directory()),
    "create_directory_token": lambda w: use(w.directory(), w.directory_token_body()),
    "revoke_directory_token": lambda w: use(*w.directory_token()),
    "list_identities": lambda w: use(w.user()),
    "create_role": lambda w: use({"name": random_name("Role")}),
    "delete_role": lambda w: use(w.role(), force=True),
    "get_role": lambda w: use(w.role()),
    "update_role": lambda w: use(w.role(), {"description": "New"}),
    "list_role_users": lambda w: use(w.assigned()[1], count=True),
    "create_group": lambda w: use({"name": random_name("Group")}),
    "delete_group": lambda w: use(w.group_role()[0], force=True),
    "get_group": lambda w: use(w.group()),
    "update_group": lambda w: use(w.group(), {"description": "New"}),
    "list_group_roles": lambda w: use(w.group_role()[0], include_expired=True),
    "assign_group_role": lambda w: use(w.group(), w.role(), {"reach": {"departments": ["Sales"]}}),
    "unassign_group_role": lambda w: use(*w.group_role()),
    "list_group_users": lambda w: use(w.member()[0], count=True),
    "add_group_user": lambda w: use(w.group(), w.user()),
    "remove_group_user": lambda w: use(*w.member()),
    "list_user_groups": lambda w: use(w.member()[1]),
    "create_service_account": lambda w: use({"name": random_name("Program")}),
    "delete_service_account": lambda w: use(w.account()),
    "get_service_account": lambda w: use(w.account()),
    "update_service_account": lambda w: use(w.account(), {"description": "New"}),
    "suspend_service_account": lambda w: use(w.account()),
    "resume_service_account": lambda w: use((id := w.account(), w.owner.suspend_service_account(id))[0]),
    "list_service_account_roles": lambda w: use(w.account_assigned()[0], include_expired=True),
    "unassign_service_account_role": lambda w: use(*w.account_assigned()),
    "assign_service_account_role": lambda w: use(w.account(), w.role(), {}),
    "list_service_account_tokens": lambda w: use((id := w.account_assigned()[0], w.token(id))[0]),
    "create_service_account_token": lambda w: use(w.account_assigned()[0], w.token_body()),
    "revoke_service_account_token": lambda w: use(id := w.account_assigned()[0], w.token(id)),
    "update_tenant": lambda w: use({"displayName": "Demo"}, if_match=etag(w.owner.get_tenant())),
    "set_logo": lambda w: use(PNG, "image/png"),
    "get_summary": lambda w: use(),
    "list_users": lambda w: use(status="active", include="roles,factors", count=True, limit=3),
    "create_user": lambda w: use({"email": f"{random_name('user')}@demo.example", "name": "A Person", "metadata": {"plan": "gold"}}),
    "delete_user": lambda w: use(w.user()),
    "get_user": lambda w: use(w.user()),
    "update_user": lambda w: use(w.user(), {"name": "New Name"}),
    "request_email_change": lambda w: use(w.person()[0], {"email": f"{random_name('new')}@demo.example"}),
    "erase_user": lambda w: use(w.deleted()),
    "list_user_events": lambda w: use(w.user()),
    "reset_factors": lambda w: use(w.person()[0]),
    "withdraw_invitation": lambda w: use(w.invited()),
    "invite_user": lambda w: use(w.user()),
    "get_user_overview": lambda w: use(w.user()),
    "send_password_reset": lambda w: use(w.person()[0]),
    "restore_user": lambda w: use(w.deleted()),
    "resume_user": lambda w: use(w.suspended()),
    "suspend_user": lambda w: use(w.user(), {"reason": "test"}),
    "list_user_roles": lambda w: use(w.assigned()[0]),
    "unassign_role": lambda w: use(*w.assigned()),
    "assign_role": lambda w: use(w.user(), w.role(), {"reach": {"departments": ["Sales"]}, "expiresAt": later(1)}),
    "end_user_sessions": lambda w: use(w.session()[0]),
    "list_user_sessions": lambda w: use(w.session()[0]),
    "end_user_session": lambda w: use(*w.session()),
    "list_user_tokens": lambda w: use(w.own_user()),
    "create_user_token": lambda w: use(w.own_user(), w.token_body()),
    "revoke_user_token": lambda w: use(w.own_user(), w.own_token()),
    "create_webhook": lambda w: use({"url": "https://hooks.example.com/x", "serviceAccountId": w.webhook()["serviceAccountId"]}),
    "delete_webhook": lambda w: use(w.webhook()["id"]),
    "get_webhook": lambda w: use(w.webhook()["id"]),
    "update_webhook": lambda w: use(w.webhook()["id"], {"enabled": False}),
    "list_deliveries": lambda w: use(w.webhook()["id"]),
    "replay_webhook": lambda w: use(w.webhook()["id"], {"from": later(-1), "to": later(0)}),
    "rotate_secret": lambda w: use(w.webhook()["id"]),
    "skip_items": lambda w: use(w.webhook()["id"], {"all": True}),
    "test_webhook": lambda w: use(w.webhook()["id"]),
}

# Operations that need an authenticator, a passkey, a mailed link, or an object in a state of a moment.
# They are sent with a proof that is wrong, and the service answers with this code.
REFUSED: dict[str, tuple[Callable[[World], Arguments], str]] = {
    "change_email": (lambda w: use({"token": "x" * 43}), "email-change-invalid"),
    "begin_enrolment": (lambda w: use({"challenge": "x" * 43}), "challenge-invalid"),
    "start_oidc": (
        lambda w: use({"connectionId": NOBODY, "returnTo": f"{w.demo.address}/console/demo/sign-in", "codeChallenge": "A" * 43}),
        "validation",
    ),
    "delete_identity": (lambda w: use(w.user(), NOBODY), "not-found"),
    "sign_out_oidc": (lambda w: use({"returnTo": f"{w.demo.address}/console/demo/sign-in"}), "validation"),
    "exchange_code": (lambda w: use({"code": "x" * 43, "codeVerifier": "x" * 43}), "sign-in-code-invalid"),
    "link_oidc": (lambda w: use({"code": "x" * 43}), "validation"),
    "complete_login": (lambda w: use({"challenge": "x" * 43, "code": "000000"}), "challenge-invalid"),
    "create_passkey": (lambda w: use({"name": "Phone", "passkey": {}}), "validation"),
    "get_passkey_options": (lambda w: use(), "passkeys-unavailable"),
    "sign_in_by_passkey": (lambda w: use({"passkey": {}}), "passkey-refused"),
    "get_passkey_sign_in_options": (lambda w: use(), "passkeys-unavailable"),
    "delete_passkey": (lambda w: use(NOBODY), "not-found"),
    "update_passkey": (lambda w: use(NOBODY, {"name": "Phone"}), "not-found"),
    "delete_totp": (lambda w: use(), "not-found"),
    "confirm_totp": (lambda w: use({"code": "000000"}), "validation"),
    "make_recovery_codes": (lambda w: use(), "no-second-factor"),
    "cancel_job": (lambda w: use(NOBODY), "not-found"),
}

AS_PERSON = {"change_password", "logout", "begin_totp"}  # they change the account of the caller
SIGN_INS = {"accept_invitation", "login"}  # they replace the session of the client


@pytest.fixture(scope="module")
def world(demo: Demo) -> World:
    key = json.loads(demo.command("operator-key", "create", random_name("Key"), "--json"))["key"]
    return World(demo, Client(demo.address, token=key))


def caller(world: World, name: str) -> Client:
    if name.startswith("operator_"):
        return world.operator
    if name in SIGN_INS:
        return world.demo.client()
    if name not in AS_PERSON:
        return world.owner
    client = world.demo.client()
    client.login({"email": world.person()[1], "password": PASSWORD})
    return client


def validate(schema: dict[str, Any], value: Any) -> None:
    validator: Any = Draft202012Validator(schema)
    validator.validate(value)


def check_response(name: str, answer: Any) -> None:
    operation = OPERATIONS[name]
    if operation.answer in ("None", "bytes"):
        assert type(answer).__name__ in ("NoneType", "bytes")
        return
    schema = {"$ref": f"#/components/schemas/{operation.answer}", "components": DOCUMENT["components"]}
    validate(schema, answer)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name: str, world: World) -> None:
    make, code = REFUSED.get(name, (ARGUMENTS.get(name, nothing), None))
    if name in ("get_logo", "delete_logo"):
        world.owner.set_logo(PNG, "image/png")
    if name.startswith("start_"):
        world.await_jobs()
    client = caller(world, name)
    arguments, options = make(world)
    if code is None:
        check_response(name, getattr(client, name)(*arguments, **options))
        return
    try:
        check_response(name, getattr(client, name)(*arguments, **options))
    except Problem as problem:
        assert problem.code == code and problem.request_id, problem
    else:
        raise AssertionError(f"{name} is accepted")


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.item])
def test_iterator(name: str, world: World) -> None:
    arguments, options = ARGUMENTS.get(name, nothing)(world)
    options = {key: value for key, value in options.items() if key not in ("count", "limit")}
    iterator = getattr(caller(world, name), re.sub("(list|find)_", "iter_", name, count=1))
    found = [item for item, _ in zip(iterator(*arguments, **options, limit=2), range(5), strict=False)]
    items = DOCUMENT["components"]["schemas"][OPERATIONS[name].answer]["properties"]["items"]["items"]
    for item in found:
        validate({**items, "components": DOCUMENT["components"]}, item)


def test_both_clients_have_the_same_methods() -> None:
    for name in OPERATIONS:
        sync, asynchronous = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(sync) == inspect.signature(asynchronous) and inspect.iscoroutinefunction(asynchronous)
    assert set(ARGUMENTS) | set(REFUSED) <= set(OPERATIONS)
