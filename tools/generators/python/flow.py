"""A flow with the code that openapi-python-client makes: flow.py ADDRESS TENANT EMAIL PASSWORD"""

import sys

from rolecall_client import AuthenticatedClient, Client
from rolecall_client.api.auths import auths_login
from rolecall_client.api.tenant import tenant_get_tenant, tenant_update_tenant
from rolecall_client.api.users import users_create_user, users_delete_user, users_get_user, users_list_users, users_update_user
from rolecall_client.models import CreateUser, Login, LoginTransport, Problem, SignIn, Tenant, UpdateTenant, UpdateTenantSettings, UpdateUser, User, UserPage

address, tenant, email, password = sys.argv[1:]


def sign_in() -> AuthenticatedClient:
    login = Login(email=email, password=password, transport=LoginTransport.BEARER)
    answer = auths_login.sync(client=Client(base_url=address), x_tenant_schema=tenant, body=login)
    assert isinstance(answer, SignIn) and isinstance(answer.token, str), answer
    return AuthenticatedClient(base_url=address, token=answer.token)


def users(client: AuthenticatedClient) -> None:
    grace = CreateUser(email="grace@python.example", name="Grace Hopper", department="Sales")
    user = users_create_user.sync(client=client, x_tenant_schema=tenant, idempotency_key="python-1", body=grace)
    assert isinstance(user, User), user
    repeated = users_create_user.sync(client=client, x_tenant_schema=tenant, idempotency_key="python-1", body=grace)
    assert isinstance(repeated, User) and repeated.id == user.id, repeated

    renamed = users_update_user.sync(user.id, client=client, x_tenant_schema=tenant, body=UpdateUser(name="Grace Murray Hopper"))
    assert isinstance(renamed, User) and (renamed.name, renamed.department) == ("Grace Murray Hopper", "Sales"), renamed
    cleared = users_update_user.sync(user.id, client=client, x_tenant_schema=tenant, body=UpdateUser(department=None))
    assert isinstance(cleared, User) and (cleared.name, cleared.department) == ("Grace Murray Hopper", None), cleared

    page = users_list_users.sync(client=client, x_tenant_schema=tenant, limit=1)
    assert isinstance(page, UserPage), page
    items = page.items
    while page.next_cursor is not None:
        page = users_list_users.sync(client=client, x_tenant_schema=tenant, limit=1, cursor=page.next_cursor)
        assert isinstance(page, UserPage), page
        items += page.items
    assert len(items) == 2 and user.id in [item.id for item in items], items

    deleted = users_delete_user.sync_detailed(user.id, client=client, x_tenant_schema=tenant)
    assert deleted.status_code == 204, deleted
    problem = users_get_user.sync(user.id, client=client, x_tenant_schema=tenant)
    assert isinstance(problem, Problem) and (problem.status, problem.code) == (404, "not-found"), problem


def settings(client: AuthenticatedClient) -> None:
    before = tenant_get_tenant.sync(client=client, x_tenant_schema=tenant)
    assert isinstance(before, Tenant) and before.settings, before
    expected = {**before.settings.to_dict(), "brandColor": "#336699"}
    patch = UpdateTenant(settings=UpdateTenantSettings(brand_color="#336699"))
    after = tenant_update_tenant.sync(client=client, x_tenant_schema=tenant, body=patch)
    assert isinstance(after, Tenant) and after.settings and after.settings.to_dict() == expected, after


service = sign_in()
users(service)
settings(service)
