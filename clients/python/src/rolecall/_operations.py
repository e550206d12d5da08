# Generated from openapi/openapi.yaml by generate.py. Do not edit. SHA-256 of the document:
# 9937159653189126987a3cb70f2020e918f6de4043008f9b268720c73608bc9b
"""A method for each operation of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Literal, cast

from ._core import AsyncSender, Sender, new_key, quote
from .models import (
    APIToken,
    APITokenPage,
    AcceptInvitation,
    Accepted,
    Access,
    AccessPage,
    AssignRole,
    Assignment,
    AssignmentPage,
    BeginEnrolment,
    ChangeEmail,
    ChangePassword,
    Changes,
    CheckPermissions,
    CheckedPermissions,
    Checkpoint,
    CompleteLogin,
    Confirm,
    ConfirmTotp,
    ConfirmedSession,
    Connection,
    ConnectionPage,
    ConnectionReport,
    ConsistencyProof,
    CreateAPIToken,
    CreateConnection,
    CreateDirectory,
    CreateDirectoryToken,
    CreateGroup,
    CreateOperatorWebhook,
    CreatePasskey,
    CreateRole,
    CreateServiceAccount,
    CreateTenant,
    CreateUser,
    CreateWebhook,
    CreatedAPIToken,
    CreatedDirectoryToken,
    CreatedOperatorWebhook,
    CreatedPasskey,
    CreatedRecoveryCodes,
    CreatedWebhook,
    CurrentSession,
    Directory,
    DirectoryPage,
    DirectoryRequestPage,
    DirectoryTokenPage,
    EmailAddress,
    EmailChange,
    Enrolment,
    Event,
    EventPage,
    EventProof,
    EventReason,
    ExchangeCode,
    Factors,
    FindConnection,
    FoundConnection,
    FoundedTenant,
    Group,
    GroupPage,
    Identity,
    IdentityPage,
    Invitation,
    InvitationPage,
    Job,
    JobPage,
    JobResult,
    JobResultPage,
    LinkDelivery,
    Login,
    Logo,
    Membership,
    MembershipPage,
    OfferedConnectionPage,
    OidcCode,
    OpenInvitation,
    OperatorWebhook,
    OperatorWebhookPage,
    Overview,
    Passkey,
    PasskeyOptions,
    PasswordReset,
    Replay,
    ResetPassword,
    RestoredUser,
    Role,
    RolePage,
    ServiceAccount,
    ServiceAccountPage,
    SignIn,
    SignInByPasskey,
    SignOutOidc,
    SignedOutOidc,
    SinglePermission,
    SkipItems,
    StartAssignJob,
    StartOidc,
    StartStatusJob,
    StartUnassignJob,
    StartedOidc,
    Tenant,
    TenantPage,
    TenantSummary,
    TotpSecret,
    UpdateConnection,
    UpdateDirectory,
    UpdateGroup,
    UpdateOperatorWebhook,
    UpdatePasskey,
    UpdateRole,
    UpdateServiceAccount,
    UpdateTenant,
    UpdateUser,
    UpdateWebhook,
    User,
    UserInTenant,
    UserInTenantPage,
    UserPage,
    UserSession,
    UserSessionPage,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryPage,
    WebhookPage,
    WebhookTestItem,
)


class Operations(Sender):
    """The operations of the API, for programs without asyncio."""

    def list_access(self, *, permission: SinglePermission, limit: int | None = None, cursor: str | None = None, department: str | None = None) -> AccessPage:
        """Lists the users and then the service accounts that have the permission through their roles, also by a wildcard, with the roles that give it. It includes pending and suspended ones. Expired assignments and deleted users are not listed. Of the users, it lists only those whose roles the caller may read. A page can be short or empty although nextCursor is not null. Needs `roles:read`, and a permission to read at least one member of users. Service accounts are listed only to callers with `service-accounts:read` in the whole tenant."""
        return cast('AccessPage', self._send_json("GET", "/access", query={"limit": limit, "cursor": cursor, "permission": permission, "department": department}))

    def iter_access(self, *, permission: SinglePermission, limit: int | None = None, department: str | None = None) -> Iterator[Access]:
        """Yields the items of all pages of list_access."""
        return self._iterate("GET", "/access", query={"limit": limit, "permission": permission, "department": department})

    def check(self, *, permission: SinglePermission, department: str | None = None) -> None:
        """The answer is 204 if the caller has the permission, and 403 otherwise."""
        self._send_none("GET", "/auths/check", query={"permission": permission, "department": department})

    def check_all(self, body: CheckPermissions) -> CheckedPermissions:
        """Checks up to 200 permissions of the caller."""
        return cast('CheckedPermissions', self._send_json("POST", "/auths/checks", body=body))

    def exchange_code(self, body: ExchangeCode) -> SignIn:
        """Starts a session with the code that returnTo got after a sign-in with an identity provider. A code works once, for one minute, and only with the verifier of codeChallenge. If a second factor is needed, the answer is 401 with a challenge, and no session is started."""
        return cast('SignIn', self._send_json("POST", "/auths/codes/exchange", body=body))

    def confirm(self, body: Confirm) -> ConfirmedSession:
        """Verifies the password, or the code of a sign-in with an identity provider (connectionCode). It also verifies the second factor if the user has one, unless the identity provider has proved a second factor. After that, the session can use operations that need a recent sign-in. Its token is replaced, as by a refresh. Needs a session: API tokens and operator keys are refused."""
        return cast('ConfirmedSession', self._send_json("POST", "/auths/confirm", body=body))

    def list_offered_connections(self) -> OfferedConnectionPage:
        """Lists the names of the tenant's connections, for a sign-in page. A tenant that does not exist has the same response as one without connections."""
        return cast('OfferedConnectionPage', self._send_json("GET", "/auths/connections"))

    def find_connection(self, body: FindConnection) -> FoundConnection:
        """Returns the connection that has the domain of the address. Only the domain counts, so the response does not reveal whether a user has the address."""
        return cast('FoundConnection', self._send_json("POST", "/auths/connections/find", body=body))

    def change_email(self, body: ChangeEmail) -> None:
        """Sets the email address with the token of a mailed link, and ends all sessions of the user except that of the request. It starts no session."""
        self._send_none("POST", "/auths/email-changes/complete", body=body)

    def get_factors(self) -> Factors:
        """Returns the caller's second factors, without their secrets. Needs a session: API tokens and operator keys are refused."""
        return cast('Factors', self._send_json("GET", "/auths/factors"))

    def accept_invitation(self, body: AcceptInvitation) -> SignIn:
        """Sets the password and starts a session. All other sessions and API tokens of the user end. If a second factor is needed, the password is set, and the answer is 401 with a challenge."""
        return cast('SignIn', self._send_json("POST", "/auths/invitations/accept", body=body))

    def login(self, body: Login) -> SignIn:
        """Starts a session, and ends the session of the request. If a second factor is needed, the answer is 401 with a challenge, and no session is started."""
        return cast('SignIn', self._send_json("POST", "/auths/login", body=body))

    def begin_enrolment(self, body: BeginEnrolment) -> Enrolment:
        """For a sign-in that was answered with second-factor-enrolment-required. Complete the sign-in with POST /auths/login/second-factor."""
        return cast('Enrolment', self._send_json("POST", "/auths/login/enrolment", body=body))

    def complete_login(self, body: CompleteLogin) -> SignIn:
        """Answers the challenge of a sign-in with a code, a recovery code or a passkey. To enroll a second factor, send its first code or the new passkey. A challenge is valid for five minutes and accepts five answers."""
        return cast('SignIn', self._send_json("POST", "/auths/login/second-factor", body=body))

    def logout(self) -> None:
        """Ends the session of the request, if any, and clears the cookie."""
        self._send_none("POST", "/auths/logout")

    def link_oidc(self, body: OidcCode) -> Identity:
        """Lets the caller sign in with an account of an identity provider. Start with POST /auths/oidc/start and the purpose link, and send the code that returnTo got. It works in the same session, once, for five minutes. The user is notified by mail. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('Identity', self._send_json("POST", "/auths/oidc/link", body=body))

    def sign_out_oidc(self, body: SignOutOidc) -> SignedOutOidc:
        """Ends the session of the request, if any, and clears the cookie, as POST /auths/logout does. If the session began with an identity provider that supports it, the response has the URL at which the browser signs out there. The identity provider then returns the browser to returnTo, if this address is registered there too. If the identity provider cannot be reached, the session ends all the same, and the URL is null."""
        return cast('SignedOutOidc', self._send_json("POST", "/auths/oidc/sign-out", body=body))

    def start_oidc(self, body: StartOidc) -> StartedOidc:
        """Returns a URL of Rolecall. Let the browser open it within two minutes. It leads to the identity provider of the connection, and from there back to returnTo, with the parameter code. To start a session, send the code to POST /auths/codes/exchange with the verifier of codeChallenge. Keep the verifier where only this browser or app can use it. With the purpose confirm, send the code to POST /auths/confirm, and with the purpose link, to POST /auths/oidc/link. If the sign-in fails, returnTo gets the parameter error: sign-in-refused, identity-unknown or connection-unavailable."""
        return cast('StartedOidc', self._send_json("POST", "/auths/oidc/start", body=body))

    def create_passkey(self, body: CreatePasskey, *, idempotency_key: str | None = None) -> CreatedPasskey:
        """Makes the passkey a second factor, and ends all other sessions of the user. The passkey can also replace the password. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedPasskey', self._send_json("POST", "/auths/passkeys", body=body, key=idempotency_key or new_key()))

    def get_passkey_options(self) -> PasskeyOptions:
        """Returns options for navigator.credentials.create. Send its result to POST /auths/passkeys within five minutes. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('PasskeyOptions', self._send_json("POST", "/auths/passkeys/options"))

    def sign_in_by_passkey(self, body: SignInByPasskey) -> SignIn:
        """Starts a session without a password. The authenticator must verify the user, so the passkey counts as two factors."""
        return cast('SignIn', self._send_json("POST", "/auths/passkeys/sign-in", body=body))

    def get_passkey_sign_in_options(self) -> PasskeyOptions:
        """Returns options for navigator.credentials.get. Send its result to POST /auths/passkeys/sign-in within five minutes."""
        return cast('PasskeyOptions', self._send_json("POST", "/auths/passkeys/sign-in-options"))

    def update_passkey(self, passkey_id: str, body: UpdatePasskey) -> Passkey:
        """Changes the name of the passkey. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('Passkey', self._send_json("PATCH", f"/auths/passkeys/{quote(passkey_id)}", body=body))

    def delete_passkey(self, passkey_id: str) -> None:
        """Removes the passkey and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/auths/passkeys/{quote(passkey_id)}")

    def change_password(self, body: ChangePassword) -> None:
        """Sets a new password and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused."""
        self._send_none("PUT", "/auths/password", body=body)

    def request_password_reset(self, body: EmailAddress) -> Accepted:
        """Mails a link to set a new password to the active user with this address. The answer is the same for every address."""
        return cast('Accepted', self._send_json("POST", "/auths/password-resets", body=body))

    def reset_password(self, body: ResetPassword) -> None:
        """Sets the password with the token of a mailed link, and ends all sessions and API tokens of the user. It starts no session. Failed sign-ins of the account until now are no longer counted. Wrong second factors are still counted."""
        self._send_none("POST", "/auths/password-resets/complete", body=body)

    def make_recovery_codes(self) -> CreatedRecoveryCodes:
        """Creates ten recovery codes, makes all earlier ones invalid, and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedRecoveryCodes', self._send_json("POST", "/auths/recovery-codes"))

    def refresh(self) -> SignIn:
        """Replaces the token of the session. The old token works for refreshGraceSeconds after the new one is first used."""
        return cast('SignIn', self._send_json("POST", "/auths/refresh"))

    def get_session(self, *, touch: bool | None = None) -> CurrentSession:
        """Returns the caller with the caller's roles and permissions, and the session if the request has one."""
        return cast('CurrentSession', self._send_json("GET", "/auths/session", query={"touch": touch}))

    def begin_totp(self) -> TotpSecret:
        """Returns a secret for the app. The app becomes a second factor when you confirm it with a code. Until then, an existing app stays in use. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('TotpSecret', self._send_json("POST", "/auths/totp"))

    def delete_totp(self) -> None:
        """Removes the app and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", "/auths/totp")

    def confirm_totp(self, body: ConfirmTotp) -> CreatedRecoveryCodes:
        """Verifies a code of the app, makes the app a second factor, and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedRecoveryCodes', self._send_json("POST", "/auths/totp/confirm", body=body))

    def list_changes(self, *, after: str | None = None, at: Literal["now"] | None = None, type: str | None = None, limit: int | None = None, wait: int | None = None) -> Changes:
        """Returns the events of the tenant in a fixed order, the oldest first. No event ever appears before the cursor of a response. If a change depends on another one, its event comes after that of the other one. To copy the data of a tenant, first get a cursor with at=now, then read the lists, and then follow the changes after this cursor. Items are CloudEvents 1.0. They have no secrets and no IP addresses. Needs `changes:read` in the whole tenant. An operator key needs the scope `changes` or `all`."""
        return cast('Changes', self._send_json("GET", "/changes", query={"after": after, "at": at, "type": type, "limit": limit, "wait": wait}))

    def list_connections(self) -> ConnectionPage:
        """Lists all connections of the tenant to identity providers, the oldest first. A tenant can have 20. Needs `connections:read` in the whole tenant."""
        return cast('ConnectionPage', self._send_json("GET", "/connections"))

    def create_connection(self, body: CreateConnection, *, idempotency_key: str | None = None) -> Connection:
        """Creates a connection to an identity provider (OpenID Connect). Users of the tenant can then sign in with it. Then register the path /auths/oidc/callback/{id} of the public URL, with the ID of the connection, as the redirect URI at the identity provider. Each connection has another redirect URI. A user who can configure a connection can become any other user, so this needs all permissions. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Connection', self._send_json("POST", "/connections", body=body, key=idempotency_key or new_key()))

    def get_connection(self, id: str) -> Connection:
        """Returns the connection, without its client secret. Needs `connections:read` in the whole tenant."""
        return cast('Connection', self._send_json("GET", f"/connections/{quote(id)}"))

    def update_connection(self, id: str, body: UpdateConnection, *, if_match: str | None = None) -> Connection:
        """Changes the members that are in the body. The issuer cannot be changed: create another connection. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Connection', self._send_json("PATCH", f"/connections/{quote(id)}", body=body, if_match=if_match))

    def delete_connection(self, id: str, *, force: bool | None = None, if_match: str | None = None) -> None:
        """If users have identities of the connection, the answer is 409. With force=true, these identities are deleted too, and the sessions that began with them end. The event has their numbers. The groups of the connection remain with their members, without a source. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/connections/{quote(id)}", query={"force": force}, if_match=if_match)

    def test_connection(self, id: str) -> ConnectionReport:
        """Fetches the metadata and the keys of the identity provider. The response lists the problems because of which users cannot sign in. The client secret can only be tested by signing in. Needs `connections:read` in the whole tenant."""
        return cast('ConnectionReport', self._send_json("POST", f"/connections/{quote(id)}/test"))

    def list_directories(self) -> DirectoryPage:
        """Lists all directories of the tenant, the oldest first. A tenant can have 20. Needs `connections:read` in the whole tenant."""
        return cast('DirectoryPage', self._send_json("GET", "/directories"))

    def create_directory(self, body: CreateDirectory, *, idempotency_key: str | None = None) -> Directory:
        """Creates a directory, through which an identity provider creates, changes and suspends users and groups with SCIM 2.0 (RFC 7644). Then create a token, and enter it at the identity provider with the base URL: the public URL, /scim/v2/ and the name of the tenant. A user who can configure a directory can become any other user except owners, so this needs all permissions. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Directory', self._send_json("POST", "/directories", body=body, key=idempotency_key or new_key()))

    def get_directory(self, id: str) -> Directory:
        """Returns the directory. Needs `connections:read` in the whole tenant."""
        return cast('Directory', self._send_json("GET", f"/directories/{quote(id)}"))

    def update_directory(self, id: str, body: UpdateDirectory, *, if_match: str | None = None) -> Directory:
        """Changes the members that are in the body. While a directory is paused, its requests get 503. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Directory', self._send_json("PATCH", f"/directories/{quote(id)}", body=body, if_match=if_match))

    def delete_directory(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the directory and its tokens. Its users and groups remain, with their memberships, and can then be changed here. If a group without a source has the name of one of its groups, the name of the directory is appended. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/directories/{quote(id)}", if_match=if_match)

    def list_directory_requests(self, id: str) -> DirectoryRequestPage:
        """Lists the last 100 requests that the identity provider has sent with a token of the directory, the newest first. A request appears after about a second. Needs `connections:read` in the whole tenant."""
        return cast('DirectoryRequestPage', self._send_json("GET", f"/directories/{quote(id)}/requests"))

    def list_directory_tokens(self, id: str) -> DirectoryTokenPage:
        """Lists the tokens of the directory without their secrets, the oldest first. Expired tokens are listed for 30 days. Needs `connections:read` in the whole tenant."""
        return cast('DirectoryTokenPage', self._send_json("GET", f"/directories/{quote(id)}/tokens"))

    def create_directory_token(self, id: str, body: CreateDirectoryToken, *, idempotency_key: str | None = None) -> CreatedDirectoryToken:
        """Creates a token with which the identity provider sends SCIM requests. The response to the first request has the secret, and no other response has it. A directory can have two tokens, so that one can replace the other. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedDirectoryToken', self._send_json("POST", f"/directories/{quote(id)}/tokens", body=body, key=idempotency_key or new_key()))

    def revoke_directory_token(self, id: str, token_id: str) -> None:
        """The next request with the token gets 401. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused."""
        self._send_none("DELETE", f"/directories/{quote(id)}/tokens/{quote(token_id)}")

    def list_events(self, *, limit: int | None = None, cursor: str | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> EventPage:
        """Lists the events of the tenant (the audit log), newest first. Needs `events:read` in the whole tenant."""
        return cast('EventPage', self._send_json("GET", "/events", query={"limit": limit, "cursor": cursor, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject}))

    def iter_events(self, *, limit: int | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> Iterator[Event]:
        """Yields the items of all pages of list_events."""
        return self._iterate("GET", "/events", query={"limit": limit, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject})

    def get_checkpoint(self) -> Checkpoint:
        """Returns the signed state of the log that all events of the tenant form: a Merkle tree as in RFC 6962, whose leaves are the events in the order of GET /changes. Save checkpoints outside of the service. With a checkpoint, you can prove later that no event before it was changed or removed. Needs `events:read` in the whole tenant."""
        return cast('Checkpoint', self._send_json("GET", "/events/checkpoint"))

    def get_consistency(self, *, from_: int) -> ConsistencyProof:
        """Returns the proof that the log begins with exactly the events of an earlier checkpoint. Needs `events:read` in the whole tenant."""
        return cast('ConsistencyProof', self._send_json("GET", "/events/consistency", query={"from": from_}))

    def get_event_proof(self, id: str) -> EventProof:
        """Returns the leaf of the event, the proof that it is in the log, and the checkpoint to verify both. An erasure of a person removes data from events. Their leaves have salted commitments to the data, and stay valid. Needs `events:read` in the whole tenant."""
        return cast('EventProof', self._send_json("GET", f"/events/{quote(id)}/proof"))

    def export_events(self, *, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, raw: bool | None = None, subject: str | None = None) -> bytes:
        """Exports the events of the tenant as a CSV file, newest first, with the filters of GET /events. The columns before and after have JSON. The columns actor.name and subject.name have the names of the actor and of the user, role or service account that the event is about, if the caller may read them. The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503. Needs `events:read` in the whole tenant."""
        return self._send_bytes("GET", "/exports/events", query={"type": type, "actor": actor, "from": from_, "to": to, "raw": raw, "subject": subject})

    def export_role_users(self, id: str, *, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, raw: bool | None = None, direct: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None) -> bytes:
        """Exports the users with the role as a CSV file, with the columns of GET /exports/users and the filters of GET /roles/{id}/users. The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503. Needs `roles:read`, and a permission to read at least one member of users."""
        return self._send_bytes("GET", f"/exports/roles/{quote(id)}/users", query={"sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "raw": raw, "direct": direct, "status": status})

    def export_users(self, *, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, raw: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None, role: str | None = None, group: str | None = None) -> bytes:
        """Exports the users that the caller may read as a CSV file, with the filters of GET /users. The columns are the ID and the members that the caller may read of some user. A cell is empty if the caller may not read the member of this user. The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503. Needs `users:read`, or `users.<member>:read` for at least one member."""
        return self._send_bytes("GET", "/exports/users", query={"sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "raw": raw, "status": status, "role": role, "group": group})

    def list_groups(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, external_id: str | None = None, count: bool | None = None) -> GroupPage:
        """Lists the groups of the tenant. Needs `groups:read` in the whole tenant."""
        return cast('GroupPage', self._send_json("GET", "/groups", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "externalId": external_id, "count": count}))

    def iter_groups(self, *, limit: int | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, external_id: str | None = None) -> Iterator[Group]:
        """Yields the items of all pages of list_groups."""
        return self._iterate("GET", "/groups", query={"limit": limit, "sort": sort, "q": q, "externalId": external_id})

    def create_group(self, body: CreateGroup, *, idempotency_key: str | None = None) -> Group:
        """Creates a group without members and roles. With source, the directory or the connection fills it. Needs `groups:create` in the whole tenant. With `source`, it also needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused."""
        return cast('Group', self._send_json("POST", "/groups", body=body, key=idempotency_key or new_key()))

    def get_group(self, id: str) -> Group:
        """Returns the group. Needs `groups:read` in the whole tenant."""
        return cast('Group', self._send_json("GET", f"/groups/{quote(id)}"))

    def update_group(self, id: str, body: UpdateGroup, *, if_match: str | None = None) -> Group:
        """Changes the members that are in the body. Of a group with a source, only the description can be changed. Needs `groups:update` in the whole tenant."""
        return cast('Group', self._send_json("PATCH", f"/groups/{quote(id)}", body=body, if_match=if_match))

    def delete_group(self, id: str, *, force: bool | None = None, if_match: str | None = None) -> None:
        """Deletes the group. Its members lose the roles that they have only through the group. If the group has roles, the answer is 409. With force=true, it is deleted with its roles. A group with a source cannot be deleted. Needs `groups:delete` in the whole tenant. The caller must be able to assign every role of the group. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/groups/{quote(id)}", query={"force": force}, if_match=if_match)

    def list_group_roles(self, id: str, *, limit: int | None = None, cursor: str | None = None, include_expired: bool | None = None) -> AssignmentPage:
        """Lists the group's role assignments that have not expired. With includeExpired=true, expired ones are listed too. Needs `groups:read` in the whole tenant."""
        return cast('AssignmentPage', self._send_json("GET", f"/groups/{quote(id)}/roles", query={"limit": limit, "cursor": cursor, "includeExpired": include_expired}))

    def iter_group_roles(self, id: str, *, limit: int | None = None, include_expired: bool | None = None) -> Iterator[Assignment]:
        """Yields the items of all pages of list_group_roles."""
        return self._iterate("GET", f"/groups/{quote(id)}/roles", query={"limit": limit, "includeExpired": include_expired})

    def assign_group_role(self, id: str, role_id: str, body: AssignRole | None = None) -> Assignment:
        """Gives the role to all members of the group, for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the group. Needs `roles:assign` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Assignment', self._send_json("PUT", f"/groups/{quote(id)}/roles/{quote(role_id)}", body=body))

    def unassign_group_role(self, id: str, role_id: str) -> None:
        """Removes the role from the group. Its members lose the role, unless they have it in another way. Needs `roles:assign` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/groups/{quote(id)}/roles/{quote(role_id)}")

    def list_group_users(self, id: str, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, count: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None) -> UserPage:
        """Lists the users who are in the group, as far as the caller may read them. Needs `groups:read` in the whole tenant, and a permission to read at least one member of users."""
        return cast('UserPage', self._send_json("GET", f"/groups/{quote(id)}/users", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "count": count, "status": status}))

    def iter_group_users(self, id: str, *, limit: int | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, status: Literal["pending", "active", "suspended"] | None = None) -> Iterator[User]:
        """Yields the items of all pages of list_group_users."""
        return self._iterate("GET", f"/groups/{quote(id)}/users", query={"limit": limit, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "status": status})

    def add_group_user(self, id: str, user_id: str) -> None:
        """Adds the user to the group. The user then has the roles of the group. If the user is a member already, nothing changes. The members of a group with a source can be changed only at the identity provider. Needs `groups:members`. If the group has roles, it also needs `roles:assign`, and the caller must be able to assign every role of the group to the user. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("PUT", f"/groups/{quote(id)}/users/{quote(user_id)}")

    def remove_group_user(self, id: str, user_id: str) -> None:
        """Removes the user from the group. The user loses the roles that the user has only through the group. The members of a group with a source can be changed only at the identity provider. Needs `groups:members`. If the group has roles, it also needs `roles:assign`, and the caller must be able to remove every role of the group from the user. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/groups/{quote(id)}/users/{quote(user_id)}")

    def list_invitations(self, *, limit: int | None = None, cursor: str | None = None) -> InvitationPage:
        """Lists the invitations that were not accepted and have not expired, of users that the caller may invite. Needs `users:invite`."""
        return cast('InvitationPage', self._send_json("GET", "/invitations", query={"limit": limit, "cursor": cursor}))

    def iter_invitations(self, *, limit: int | None = None) -> Iterator[OpenInvitation]:
        """Yields the items of all pages of list_invitations."""
        return self._iterate("GET", "/invitations", query={"limit": limit})

    def list_jobs(self, *, limit: int | None = None, cursor: str | None = None) -> JobPage:
        """Lists the jobs that the caller started, newest first. Callers with events:read in the whole tenant get all jobs. Jobs are kept for 7 days after their end. Needs no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs."""
        return cast('JobPage', self._send_json("GET", "/jobs", query={"limit": limit, "cursor": cursor}))

    def iter_jobs(self, *, limit: int | None = None) -> Iterator[Job]:
        """Yields the items of all pages of list_jobs."""
        return self._iterate("GET", "/jobs", query={"limit": limit})

    def start_assign_role_job(self, body: StartAssignJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that assigns the role to each user as PUT /users/{id}/roles/{roleId} does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `roles:assign`, and a permission to read at least one member of users. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Job', self._send_json("POST", "/jobs/assign-role", body=body, key=idempotency_key or new_key()))

    def start_resume_users_job(self, body: StartStatusJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that resumes each user as POST /users/{id}/resume does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `users:suspend`, and a permission to read at least one member of users. With a session, needs a recent sign-in or re-authentication."""
        return cast('Job', self._send_json("POST", "/jobs/resume-users", body=body, key=idempotency_key or new_key()))

    def start_suspend_users_job(self, body: StartStatusJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that suspends each user as POST /users/{id}/suspend does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `users:suspend`, and a permission to read at least one member of users."""
        return cast('Job', self._send_json("POST", "/jobs/suspend-users", body=body, key=idempotency_key or new_key()))

    def start_unassign_role_job(self, body: StartUnassignJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that removes the role from each user as DELETE /users/{id}/roles/{roleId} does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `roles:assign`, and a permission to read at least one member of users. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Job', self._send_json("POST", "/jobs/unassign-role", body=body, key=idempotency_key or new_key()))

    def get_job(self, id: str) -> Job:
        """Returns the job with its progress. Needs no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs."""
        return cast('Job', self._send_json("GET", f"/jobs/{quote(id)}"))

    def cancel_job(self, id: str) -> Job:
        """Ends the job before it changes more users. Users that it has changed stay changed. If the job has ended, it does not change. Needs no permission for jobs that the caller started. For other jobs, it needs `events:read` and the permission of the change, both in the whole tenant."""
        return cast('Job', self._send_json("POST", f"/jobs/{quote(id)}/cancel"))

    def list_job_results(self, id: str, *, limit: int | None = None, cursor: str | None = None, outcome: Literal["changed", "unchanged", "refused"] | None = None) -> JobResultPage:
        """Lists the users that the job has visited, in the order of their IDs. Of each job, the first 10,000 refused users and the first 10,000 other users are kept. Needs no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs."""
        return cast('JobResultPage', self._send_json("GET", f"/jobs/{quote(id)}/results", query={"limit": limit, "cursor": cursor, "outcome": outcome}))

    def iter_job_results(self, id: str, *, limit: int | None = None, outcome: Literal["changed", "unchanged", "refused"] | None = None) -> Iterator[JobResult]:
        """Yields the items of all pages of list_job_results."""
        return self._iterate("GET", f"/jobs/{quote(id)}/results", query={"limit": limit, "outcome": outcome})

    def operator_list_changes(self, *, after: str | None = None, at: Literal["now"] | None = None, type: str | None = None, limit: int | None = None, wait: int | None = None) -> Changes:
        """Returns the events of all tenants that the operator key may access, in a fixed order, as GET /changes does for one tenant. The events of a tenant have the same order as there. No event ever appears at or before a cursor that was returned. The answer is 410 if an event after the cursor was deleted in any tenant, if the tenant of an event after the cursor was purged, or if the database has lost commits. The operator key needs the scope `changes` or `all`."""
        return cast('Changes', self._send_json("GET", "/operator/changes", query={"after": after, "at": at, "type": type, "limit": limit, "wait": wait}))

    def operator_list_events(self, *, limit: int | None = None, cursor: str | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> EventPage:
        """Lists what operators have done in the whole instance, the newest first: operator keys that were created and revoked, tenants that were created, suspended, resumed, deleted and restored, and changes of the webhooks of operators. The events remain after the data of a tenant was removed. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('EventPage', self._send_json("GET", "/operator/events", query={"limit": limit, "cursor": cursor, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject}))

    def operator_iter_events(self, *, limit: int | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> Iterator[Event]:
        """Yields the items of all pages of operator_list_events."""
        return self._iterate("GET", "/operator/events", query={"limit": limit, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject})

    def operator_get_checkpoint(self) -> Checkpoint:
        """Returns the signed size and root of the Merkle log of the operators, as GET /events/checkpoint does for a tenant. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('Checkpoint', self._send_json("GET", "/operator/events/checkpoint"))

    def operator_get_consistency(self, *, from_: int) -> ConsistencyProof:
        """Returns the proof that the operators' log begins with the events of an earlier checkpoint. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('ConsistencyProof', self._send_json("GET", "/operator/events/consistency", query={"from": from_}))

    def operator_get_event_proof(self, id: str) -> EventProof:
        """Returns the proof that the event is in the operators' log, as GET /events/{id}/proof does for a tenant. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('EventProof', self._send_json("GET", f"/operator/events/{quote(id)}/proof"))

    def operator_list_tenants(self, *, limit: int | None = None, cursor: str | None = None, status: Literal["active", "suspended", "deleted"] | None = None) -> TenantPage:
        """Lists the tenants that the operator key may access, sorted by name. The operator key needs the scope `tenants` or `all`."""
        return cast('TenantPage', self._send_json("GET", "/operator/tenants", query={"limit": limit, "cursor": cursor, "status": status}))

    def operator_iter_tenants(self, *, limit: int | None = None, status: Literal["active", "suspended", "deleted"] | None = None) -> Iterator[Tenant]:
        """Yields the items of all pages of operator_list_tenants."""
        return self._iterate("GET", "/operator/tenants", query={"limit": limit, "status": status})

    def operator_create_tenant(self, body: CreateTenant, *, idempotency_key: str | None = None) -> FoundedTenant:
        """Creates a tenant with the built-in roles, and mails an invitation to its first owner, unless `delivery` is `return`. The answer also has the link of the invitation. It is returned only once. Needs an operator key for all tenants. The operator key needs the scope `tenants` or `all`."""
        return cast('FoundedTenant', self._send_json("POST", "/operator/tenants", body=body, key=idempotency_key or new_key()))

    def operator_get_tenant(self, name: str) -> Tenant:
        """Returns the tenant with its settings, also while it is deleted and can be restored. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', self._send_json("GET", f"/operator/tenants/{quote(name)}"))

    def operator_update_tenant(self, name: str, body: UpdateTenant, *, if_match: str | None = None) -> Tenant:
        """Changes the display name and the settings that are in the body. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', self._send_json("PATCH", f"/operator/tenants/{quote(name)}", body=body, if_match=if_match))

    def operator_delete_tenant(self, name: str, *, if_match: str | None = None) -> None:
        """Makes the tenant unavailable at once. It can be restored for 24 hours. After that, its data is removed. Its name cannot be used again for 30 days. The operator key needs the scope `tenants` or `all`."""
        self._send_none("DELETE", f"/operator/tenants/{quote(name)}", if_match=if_match)

    def operator_restore_tenant(self, name: str, body: EventReason | None = None) -> Tenant:
        """Restores a tenant that was deleted in the last 24 hours, with its users, roles, sessions and API tokens. A tenant that is not deleted does not change. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', self._send_json("POST", f"/operator/tenants/{quote(name)}/restore", body=body))

    def operator_resume_tenant(self, name: str, body: EventReason | None = None) -> Tenant:
        """Lets the users and API tokens of a suspended tenant work again. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', self._send_json("POST", f"/operator/tenants/{quote(name)}/resume", body=body))

    def operator_suspend_tenant(self, name: str, body: EventReason | None = None) -> Tenant:
        """Refuses all sign-ins, sessions and API tokens of the tenant until it is resumed. No data is deleted. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', self._send_json("POST", f"/operator/tenants/{quote(name)}/suspend", body=body))

    def operator_find_users(self, *, email: str, limit: int | None = None, cursor: str | None = None) -> UserInTenantPage:
        """Lists the users with the email address in all tenants that the operator key may access, also users and tenants that are suspended. A page that asks for an address and then shows the tenants of its owner must not show them to others: mail them, or sign in first. An operator key can do 600 searches in a minute. The operator key needs the scope `lookup` or `all`."""
        return cast('UserInTenantPage', self._send_json("GET", "/operator/users", query={"limit": limit, "cursor": cursor, "email": email}))

    def operator_iter_users(self, *, email: str, limit: int | None = None) -> Iterator[UserInTenant]:
        """Yields the items of all pages of operator_find_users."""
        return self._iterate("GET", "/operator/users", query={"limit": limit, "email": email})

    def operator_list_webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> OperatorWebhookPage:
        """Lists the webhooks of the operators of the instance, the oldest first. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('OperatorWebhookPage', self._send_json("GET", "/operator/webhooks", query={"limit": limit, "cursor": cursor}))

    def operator_iter_webhooks(self, *, limit: int | None = None) -> Iterator[OperatorWebhook]:
        """Yields the items of all pages of operator_list_webhooks."""
        return self._iterate("GET", "/operator/webhooks", query={"limit": limit})

    def operator_create_webhook(self, body: CreateOperatorWebhook, *, idempotency_key: str | None = None) -> CreatedOperatorWebhook:
        """Creates a webhook, which sends the items of GET /operator/changes, those of all tenants with all values, to a URL. Each request has the headers of Standard Webhooks, with a signature. The secret is returned only once. The webhook does not depend on the key that created it. The instance can have 20 webhooks of operators. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('CreatedOperatorWebhook', self._send_json("POST", "/operator/webhooks", body=body, key=idempotency_key or new_key()))

    def operator_get_webhook(self, id: str) -> OperatorWebhook:
        """Returns the webhook, without its secret. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('OperatorWebhook', self._send_json("GET", f"/operator/webhooks/{quote(id)}"))

    def operator_update_webhook(self, id: str, body: UpdateOperatorWebhook, *, if_match: str | None = None) -> OperatorWebhook:
        """Changes the members that are in the body. Items that could not be delivered are sent again at once. A webhook that is enabled again continues with the first item that was not delivered. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('OperatorWebhook', self._send_json("PATCH", f"/operator/webhooks/{quote(id)}", body=body, if_match=if_match))

    def operator_delete_webhook(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the webhook with its deliveries. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        self._send_none("DELETE", f"/operator/webhooks/{quote(id)}", if_match=if_match)

    def operator_list_deliveries(self, id: str, *, limit: int | None = None, cursor: str | None = None, result: Literal["delivered", "failed"] | None = None) -> WebhookDeliveryPage:
        """Lists the attempts to send items, the newest first, as GET /webhooks/{id}/deliveries does for a webhook of a tenant. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('WebhookDeliveryPage', self._send_json("GET", f"/operator/webhooks/{quote(id)}/deliveries", query={"limit": limit, "cursor": cursor, "result": result}))

    def operator_iter_deliveries(self, id: str, *, limit: int | None = None, result: Literal["delivered", "failed"] | None = None) -> Iterator[WebhookDelivery]:
        """Yields the items of all pages of operator_list_deliveries."""
        return self._iterate("GET", f"/operator/webhooks/{quote(id)}/deliveries", query={"limit": limit, "result": result})

    def operator_replay_webhook(self, id: str, body: Replay) -> None:
        """Sends the items of a time again, as far as their events are kept and no event after them was deleted. The items have the same IDs as before. New items are sent at the same time. A replay ends an earlier one. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        self._send_none("POST", f"/operator/webhooks/{quote(id)}/replay", body=body)

    def operator_rotate_secret(self, id: str, *, if_match: str | None = None) -> CreatedOperatorWebhook:
        """Gives the webhook a new secret, which is returned only once. For 24 hours, each request has two signatures: one with the new and one with the old secret. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('CreatedOperatorWebhook', self._send_json("POST", f"/operator/webhooks/{quote(id)}/rotate-secret", if_match=if_match))

    def operator_skip_items(self, id: str, body: SkipItems | None = None) -> None:
        """Continues after the items that fail: of each part of the webhook, the first item that could not be delivered is not sent again. With all, no item of an event that is in the change feed of all tenants now is sent, and a replay ends. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        self._send_none("POST", f"/operator/webhooks/{quote(id)}/skip", body=body)

    def operator_test_webhook(self, id: str) -> WebhookTestItem:
        """Sends one item of the type webhook.test, also if the webhook is disabled. Its tenant is an empty text. The result is in the list of deliveries. A failed test is not repeated. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('WebhookTestItem', self._send_json("POST", f"/operator/webhooks/{quote(id)}/test"))

    def list_roles(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, key: str | None = None, permission: SinglePermission | None = None, count: bool | None = None) -> RolePage:
        """Lists the roles of the tenant. Needs `roles:read`."""
        return cast('RolePage', self._send_json("GET", "/roles", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "key": key, "permission": permission, "count": count}))

    def iter_roles(self, *, limit: int | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, key: str | None = None, permission: SinglePermission | None = None) -> Iterator[Role]:
        """Yields the items of all pages of list_roles."""
        return self._iterate("GET", "/roles", query={"limit": limit, "sort": sort, "q": q, "key": key, "permission": permission})

    def create_role(self, body: CreateRole, *, idempotency_key: str | None = None) -> Role:
        """Creates a role with the permissions in the body. Needs `roles:create`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Role', self._send_json("POST", "/roles", body=body, key=idempotency_key or new_key()))

    def get_role(self, id: str) -> Role:
        """Returns the role with its permissions. Needs `roles:read`."""
        return cast('Role', self._send_json("GET", f"/roles/{quote(id)}"))

    def update_role(self, id: str, body: UpdateRole, *, if_match: str | None = None) -> Role:
        """Changes the members that are in the body. The change also applies to the users and service accounts that have the role. Needs `roles:update`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Role', self._send_json("PATCH", f"/roles/{quote(id)}", body=body, if_match=if_match))

    def delete_role(self, id: str, *, force: bool | None = None, if_match: str | None = None) -> None:
        """If users, service accounts or groups have the role, the answer is 409. With force=true, the role is removed from all of them. If the setting secondFactor of the tenant names the role, the answer is 409, also with force=true. Needs `roles:delete`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/roles/{quote(id)}", query={"force": force}, if_match=if_match)

    def list_role_users(self, id: str, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, count: bool | None = None, direct: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None, at: str | None = None) -> UserPage:
        """Lists the users who have the role, directly or through a group, as far as the caller may read them. With at, it lists the users who had the role at an earlier time. Needs `roles:read`, and a permission to read at least one member of users."""
        return cast('UserPage', self._send_json("GET", f"/roles/{quote(id)}/users", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "count": count, "direct": direct, "status": status, "at": at}))

    def iter_role_users(self, id: str, *, limit: int | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, direct: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None, at: str | None = None) -> Iterator[User]:
        """Yields the items of all pages of list_role_users."""
        return self._iterate("GET", f"/roles/{quote(id)}/users", query={"limit": limit, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "direct": direct, "status": status, "at": at})

    def list_service_accounts(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, count: bool | None = None) -> ServiceAccountPage:
        """Lists the service accounts of the tenant. Needs `service-accounts:read` in the whole tenant."""
        return cast('ServiceAccountPage', self._send_json("GET", "/service-accounts", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "count": count}))

    def iter_service_accounts(self, *, limit: int | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None) -> Iterator[ServiceAccount]:
        """Yields the items of all pages of list_service_accounts."""
        return self._iterate("GET", "/service-accounts", query={"limit": limit, "sort": sort, "q": q})

    def create_service_account(self, body: CreateServiceAccount, *, idempotency_key: str | None = None) -> ServiceAccount:
        """Creates a service account without roles and API tokens. Needs `service-accounts:create` in the whole tenant."""
        return cast('ServiceAccount', self._send_json("POST", "/service-accounts", body=body, key=idempotency_key or new_key()))

    def get_service_account(self, id: str) -> ServiceAccount:
        """Returns the service account. Needs `service-accounts:read` in the whole tenant."""
        return cast('ServiceAccount', self._send_json("GET", f"/service-accounts/{quote(id)}"))

    def update_service_account(self, id: str, body: UpdateServiceAccount, *, if_match: str | None = None) -> ServiceAccount:
        """Changes the members that are in the body. Needs `service-accounts:update` in the whole tenant."""
        return cast('ServiceAccount', self._send_json("PATCH", f"/service-accounts/{quote(id)}", body=body, if_match=if_match))

    def delete_service_account(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the service account with its API tokens and role assignments. It cannot be restored. Needs `service-accounts:delete` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/service-accounts/{quote(id)}", if_match=if_match)

    def resume_service_account(self, id: str, body: EventReason | None = None) -> ServiceAccount:
        """Lets the API tokens of the service account work again. Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('ServiceAccount', self._send_json("POST", f"/service-accounts/{quote(id)}/resume", body=body))

    def list_service_account_roles(self, id: str, *, limit: int | None = None, cursor: str | None = None, include_expired: bool | None = None) -> AssignmentPage:
        """Lists the service account's role assignments that have not expired. With includeExpired=true, expired ones are listed too. Needs `service-accounts:read` in the whole tenant."""
        return cast('AssignmentPage', self._send_json("GET", f"/service-accounts/{quote(id)}/roles", query={"limit": limit, "cursor": cursor, "includeExpired": include_expired}))

    def iter_service_account_roles(self, id: str, *, limit: int | None = None, include_expired: bool | None = None) -> Iterator[Assignment]:
        """Yields the items of all pages of list_service_account_roles."""
        return self._iterate("GET", f"/service-accounts/{quote(id)}/roles", query={"limit": limit, "includeExpired": include_expired})

    def assign_service_account_role(self, id: str, role_id: str, body: AssignRole | None = None) -> Assignment:
        """Assigns the role for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the service account. Needs `service-accounts:update` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Assignment', self._send_json("PUT", f"/service-accounts/{quote(id)}/roles/{quote(role_id)}", body=body))

    def unassign_service_account_role(self, id: str, role_id: str) -> None:
        """Removes the role from the service account. Needs `service-accounts:update` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/service-accounts/{quote(id)}/roles/{quote(role_id)}")

    def suspend_service_account(self, id: str, body: EventReason | None = None) -> ServiceAccount:
        """Refuses the API tokens of the service account until it is resumed. Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has."""
        return cast('ServiceAccount', self._send_json("POST", f"/service-accounts/{quote(id)}/suspend", body=body))

    def list_service_account_tokens(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> APITokenPage:
        """Lists the API tokens of the service account, including those that expired in the last 30 days. Needs `service-accounts:read` in the whole tenant."""
        return cast('APITokenPage', self._send_json("GET", f"/service-accounts/{quote(id)}/tokens", query={"limit": limit, "cursor": cursor}))

    def iter_service_account_tokens(self, id: str, *, limit: int | None = None) -> Iterator[APIToken]:
        """Yields the items of all pages of list_service_account_tokens."""
        return self._iterate("GET", f"/service-accounts/{quote(id)}/tokens", query={"limit": limit})

    def create_service_account_token(self, id: str, body: CreateAPIToken, *, idempotency_key: str | None = None) -> CreatedAPIToken:
        """Creates an API token that acts as the service account. The secret is returned only once. Needs `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedAPIToken', self._send_json("POST", f"/service-accounts/{quote(id)}/tokens", body=body, key=idempotency_key or new_key()))

    def revoke_service_account_token(self, id: str, token_id: str) -> None:
        """Revokes the API token. Links that were requested with it, such as invitations, become invalid. Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has."""
        self._send_none("DELETE", f"/service-accounts/{quote(id)}/tokens/{quote(token_id)}")

    def get_tenant(self) -> Tenant:
        """Returns the tenant of the request, with its settings. Needs `tenant:read` in the whole tenant."""
        return cast('Tenant', self._send_json("GET", "/tenant"))

    def update_tenant(self, body: UpdateTenant, *, if_match: str | None = None) -> Tenant:
        """Changes the display name and the settings that are in the body. Needs `tenant:update` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        return cast('Tenant', self._send_json("PATCH", "/tenant", body=body, if_match=if_match))

    def get_logo(self) -> bytes:
        """Returns the image as it was uploaded. Needs `tenant:read` in the whole tenant."""
        return self._send_bytes("GET", "/tenant/logo")

    def set_logo(self, body: bytes, content_type: Literal["image/jpeg", "image/png", "image/webp"], *, if_match: str | None = None) -> Logo:
        """Stores the image in the body, and replaces an earlier logo. The pages where users sign in, accept an invitation, or follow another mailed link show it to everyone. The image has a width and a height from 16 to 1024 pixels. It is stored unchanged, with its metadata. SVG is refused, because it can contain scripts. Needs `tenant:update` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        return cast('Logo', self._send_json("PUT", "/tenant/logo", content=body, content_type=content_type, if_match=if_match))

    def delete_logo(self, *, if_match: str | None = None) -> None:
        """Removes the logo. Browsers can keep a copy. Needs `tenant:update` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", "/tenant/logo", if_match=if_match)

    def get_summary(self, *, time_zone: str | None = None) -> TenantSummary:
        """Returns what administrators look at first: open invitations, failed sign-ins and blocked sources, the coverage of second factors, roles and API tokens that expire within 14 days, and the number of events of each of the last 30 days. Parts that the caller may not read are absent. Needs in the whole tenant one of: `users:invite`; `users:reset-factors` and `users.status:read`; `events:read`; `roles:read`; `sessions:read`; `service-accounts:read`. The response has only the parts that the caller may read."""
        return cast('TenantSummary', self._send_json("GET", "/tenant/summary", query={"timeZone": time_zone}))

    def list_users(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, count: bool | None = None, status: Literal["pending", "active", "suspended", "deleted"] | None = None, role: str | None = None, group: str | None = None, include: str | None = None) -> UserPage:
        """Lists the users that the caller may read. Needs `users:read`, or `users.<member>:read` for at least one member."""
        return cast('UserPage', self._send_json("GET", "/users", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "count": count, "status": status, "role": role, "group": group, "include": include}))

    def iter_users(self, *, limit: int | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, status: Literal["pending", "active", "suspended", "deleted"] | None = None, role: str | None = None, group: str | None = None, include: str | None = None) -> Iterator[User]:
        """Yields the items of all pages of list_users."""
        return self._iterate("GET", "/users", query={"limit": limit, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "status": status, "role": role, "group": group, "include": include})

    def create_user(self, body: CreateUser, *, idempotency_key: str | None = None) -> User:
        """Creates a user with the status pending. To let the user set a password and sign in, set invite, or invite the user later. Needs `users:create`. If `invite` is true, it also needs `users:invite`."""
        return cast('User', self._send_json("POST", "/users", body=body, key=idempotency_key or new_key()))

    def get_user(self, id: str) -> User:
        """Returns the user, with the members that the caller may read. Needs any of the `users` permissions except `users:restore`. Users need no permission to read themselves, even with an API token."""
        return cast('User', self._send_json("GET", f"/users/{quote(id)}"))

    def update_user(self, id: str, body: UpdateUser, *, if_match: str | None = None) -> User:
        """Changes the members that are in the body. To change the email address, use POST /users/{id}/email-changes. Only the identity provider can change the name and the department of a user of a directory. Needs `users:update`, or `users.<member>:update` for each member in the body. With a session, users need no permission to change their own name."""
        return cast('User', self._send_json("PATCH", f"/users/{quote(id)}", body=body, if_match=if_match))

    def delete_user(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the user, and ends the user's sessions and API tokens. The user can be restored for 30 days. Needs `users:delete`. The caller must have each of Rolecall's own permissions that the user has. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/users/{quote(id)}", if_match=if_match)

    def request_email_change(self, id: str, body: EmailAddress, *, idempotency_key: str | None = None) -> EmailChange:
        """Mails a confirmation link to the new address, unless another user has it. The answer is the same in both cases. The current address is notified, and stays in use until the new one is confirmed. Needs `users.email:update`. Users with a session need no permission for their own account. For their own account, users need a session: an API token is refused. The user must not be suspended. For another user or with an API token, the caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        return cast('EmailChange', self._send_json("POST", f"/users/{quote(id)}/email-changes", body=body, key=idempotency_key or new_key()))

    def erase_user(self, id: str, body: EventReason | None = None) -> None:
        """Permanently removes the user and all personal data. It also works for a deleted user. Events about the user keep only their type and time, and the IDs of assigned roles. The event of the erasure keeps its reason, so the reason must have no personal data of the user. Needs `users:erase`. The caller must have each of Rolecall's own permissions that the user has. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("POST", f"/users/{quote(id)}/erase", body=body)

    def list_user_events(self, id: str, *, limit: int | None = None, cursor: str | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None) -> EventPage:
        """Lists the events about the user, newest first. Needs `events:read` in the whole tenant. Users with a session need no permission for their own account."""
        return cast('EventPage', self._send_json("GET", f"/users/{quote(id)}/events", query={"limit": limit, "cursor": cursor, "type": type, "actor": actor, "from": from_, "to": to}))

    def iter_user_events(self, id: str, *, limit: int | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None) -> Iterator[Event]:
        """Yields the items of all pages of list_user_events."""
        return self._iterate("GET", f"/users/{quote(id)}/events", query={"limit": limit, "type": type, "actor": actor, "from": from_, "to": to})

    def reset_factors(self, id: str) -> None:
        """Removes all second factors of a user who has lost them, ends the user's sessions, and notifies the user. After that, the user signs in with the password alone, or enrolls a new factor if the tenant requires one. Needs `users:reset-factors`. For their own account, users need a session: an API token is refused. The caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/users/{quote(id)}/factors")

    def list_user_groups(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> MembershipPage:
        """Lists the memberships of the user in groups. Needs `groups:read` in the whole tenant. Users with a session need no permission for their own account."""
        return cast('MembershipPage', self._send_json("GET", f"/users/{quote(id)}/groups", query={"limit": limit, "cursor": cursor}))

    def iter_user_groups(self, id: str, *, limit: int | None = None) -> Iterator[Membership]:
        """Yields the items of all pages of list_user_groups."""
        return self._iterate("GET", f"/users/{quote(id)}/groups", query={"limit": limit})

    def list_identities(self, id: str) -> IdentityPage:
        """Lists the accounts at identity providers with which the user can sign in, the oldest first. A user can have 20. Needs `identities:read`. Users with a session need no permission for their own account."""
        return cast('IdentityPage', self._send_json("GET", f"/users/{quote(id)}/identities"))

    def delete_identity(self, id: str, identity_id: str) -> None:
        """The user cannot sign in with the identity any more, and the sessions that began with it end. Needs `identities:delete`. Users with a session need no permission for their own account. For their own account, users need a session: an API token is refused. For another user or with an API token, the caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/users/{quote(id)}/identities/{quote(identity_id)}")

    def invite_user(self, id: str, body: LinkDelivery | None = None, *, idempotency_key: str | None = None) -> Invitation:
        """Mails the user a link to set a password and sign in. The link replaces an earlier invitation. With the delivery `return`, no mail is sent and the response has the link. This needs an operator key, or a service account with `users:issue-links`. Only an operator key gets the link of an owner. Needs `users:invite`. The user must not be suspended. The caller must be able to assign every role of the user."""
        return cast('Invitation', self._send_json("POST", f"/users/{quote(id)}/invitations", body=body, key=idempotency_key or new_key()))

    def withdraw_invitation(self, id: str) -> None:
        """Makes the link of the invitation invalid. The answer is the same for a user without an invitation. Needs `users:invite`. The caller must have each of Rolecall's own permissions that the user has."""
        self._send_none("DELETE", f"/users/{quote(id)}/invitations")

    def get_user_overview(self, id: str) -> Overview:
        """Returns a summary of the user: roles, permissions, sign-in state, sessions, API tokens, second factors and recent events. Parts that the caller may not read are absent. Needs any of the `users` permissions except `users:restore`. Users need no permission to read themselves, even with an API token."""
        return cast('Overview', self._send_json("GET", f"/users/{quote(id)}/overview"))

    def send_password_reset(self, id: str, body: LinkDelivery | None = None, *, idempotency_key: str | None = None) -> PasswordReset:
        """Mails the user a link to set a new password. The response does not have the link, except with the delivery `return`. Then no mail is sent. This needs an operator key, or a service account with `users:issue-links`. Only an operator key gets the link of an owner. Needs `users:invite`. The user must not be suspended. The caller must be able to assign every role of the user."""
        return cast('PasswordReset', self._send_json("POST", f"/users/{quote(id)}/password-resets", body=body, key=idempotency_key or new_key()))

    def restore_user(self, id: str) -> RestoredUser:
        """Restores a user who was deleted in the last 30 days. The restored user is pending, or suspended if the user was suspended before, and needs an invitation to sign in. The user gets back the roles that the caller may assign. Needs `users:restore`. With a session, needs a recent sign-in or re-authentication."""
        return cast('RestoredUser', self._send_json("POST", f"/users/{quote(id)}/restore"))

    def resume_user(self, id: str, body: EventReason | None = None) -> User:
        """Lets a suspended user sign in again, and lets the user's API tokens work again. A user without a password becomes pending. Needs `users:suspend`. The caller must have each of Rolecall's own permissions that the user has. The caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        return cast('User', self._send_json("POST", f"/users/{quote(id)}/resume", body=body))

    def list_user_roles(self, id: str, *, limit: int | None = None, cursor: str | None = None, include_expired: bool | None = None, at: str | None = None) -> AssignmentPage:
        """Lists the user's role assignments that have not expired, with those through groups: one item for each way in which the user has a role. With includeExpired=true, expired ones are listed too. With at, the answer has the assignments of an earlier time. Needs `roles:read`. Users with a session need no permission for their own account."""
        return cast('AssignmentPage', self._send_json("GET", f"/users/{quote(id)}/roles", query={"limit": limit, "cursor": cursor, "includeExpired": include_expired, "at": at}))

    def iter_user_roles(self, id: str, *, limit: int | None = None, include_expired: bool | None = None, at: str | None = None) -> Iterator[Assignment]:
        """Yields the items of all pages of list_user_roles."""
        return self._iterate("GET", f"/users/{quote(id)}/roles", query={"limit": limit, "includeExpired": include_expired, "at": at})

    def assign_role(self, id: str, role_id: str, body: AssignRole | None = None) -> Assignment:
        """Assigns the role for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the user. Needs `roles:assign`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Assignment', self._send_json("PUT", f"/users/{quote(id)}/roles/{quote(role_id)}", body=body))

    def unassign_role(self, id: str, role_id: str) -> None:
        """Removes the role from the user. If the user has the role only through a group, the answer is 404. Needs `roles:assign`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/users/{quote(id)}/roles/{quote(role_id)}")

    def list_user_sessions(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> UserSessionPage:
        """Lists the live sessions of the user, newest first. Needs `sessions:read`. Users with a session need no permission for their own account."""
        return cast('UserSessionPage', self._send_json("GET", f"/users/{quote(id)}/sessions", query={"limit": limit, "cursor": cursor}))

    def iter_user_sessions(self, id: str, *, limit: int | None = None) -> Iterator[UserSession]:
        """Yields the items of all pages of list_user_sessions."""
        return self._iterate("GET", f"/users/{quote(id)}/sessions", query={"limit": limit})

    def end_user_sessions(self, id: str) -> None:
        """Ends all sessions of the user. If the session of the request is one of them, its cookie is cleared. Links that were requested in these sessions, such as invitations of other users, become invalid. A change of the user's email address that is not confirmed becomes invalid too. Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."""
        self._send_none("DELETE", f"/users/{quote(id)}/sessions")

    def end_user_session(self, id: str, session_id: str) -> None:
        """Ends the session. If it is the session of the request, its cookie is cleared. Links that were requested in it, such as invitations of other users, become invalid. Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."""
        self._send_none("DELETE", f"/users/{quote(id)}/sessions/{quote(session_id)}")

    def suspend_user(self, id: str, body: EventReason | None = None) -> User:
        """Ends all sessions of the user. Until the user is resumed, sign-ins and the user's API tokens are refused. Needs `users:suspend`. The caller must have each of Rolecall's own permissions that the user has."""
        return cast('User', self._send_json("POST", f"/users/{quote(id)}/suspend", body=body))

    def list_user_tokens(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> APITokenPage:
        """Lists the API tokens that act as the user, including those that expired in the last 30 days. Needs `sessions:read`. Users with a session need no permission for their own account."""
        return cast('APITokenPage', self._send_json("GET", f"/users/{quote(id)}/tokens", query={"limit": limit, "cursor": cursor}))

    def iter_user_tokens(self, id: str, *, limit: int | None = None) -> Iterator[APIToken]:
        """Yields the items of all pages of list_user_tokens."""
        return self._iterate("GET", f"/users/{quote(id)}/tokens", query={"limit": limit})

    def create_user_token(self, id: str, body: CreateAPIToken, *, idempotency_key: str | None = None) -> CreatedAPIToken:
        """Creates an API token that acts as the caller. The secret is returned only once. Needs no permission, but users can create tokens only for themselves. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedAPIToken', self._send_json("POST", f"/users/{quote(id)}/tokens", body=body, key=idempotency_key or new_key()))

    def revoke_user_token(self, id: str, token_id: str) -> None:
        """Revokes the API token. Links that were requested with it, such as invitations, become invalid. Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."""
        self._send_none("DELETE", f"/users/{quote(id)}/tokens/{quote(token_id)}")

    def list_webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> WebhookPage:
        """Lists the webhooks of the tenant, the oldest first. Needs `webhooks:read` in the whole tenant."""
        return cast('WebhookPage', self._send_json("GET", "/webhooks", query={"limit": limit, "cursor": cursor}))

    def iter_webhooks(self, *, limit: int | None = None) -> Iterator[Webhook]:
        """Yields the items of all pages of list_webhooks."""
        return self._iterate("GET", "/webhooks", query={"limit": limit})

    def create_webhook(self, body: CreateWebhook, *, idempotency_key: str | None = None) -> CreatedWebhook:
        """Creates a webhook, which sends the items of GET /changes to a URL. The first item is the event webhook.created about it. Each request has the headers of Standard Webhooks, with a signature. The secret is returned only once. A tenant can have 20 webhooks. Needs `webhooks:create` and `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedWebhook', self._send_json("POST", "/webhooks", body=body, key=idempotency_key or new_key()))

    def get_webhook(self, id: str) -> Webhook:
        """Returns the webhook, without its secret. Needs `webhooks:read` in the whole tenant."""
        return cast('Webhook', self._send_json("GET", f"/webhooks/{quote(id)}"))

    def update_webhook(self, id: str, body: UpdateWebhook, *, if_match: str | None = None) -> Webhook:
        """Changes the members that are in the body. Items that could not be delivered are sent again at once. A webhook that is enabled again continues with the first item that was not delivered. Needs `webhooks:update` and `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('Webhook', self._send_json("PATCH", f"/webhooks/{quote(id)}", body=body, if_match=if_match))

    def delete_webhook(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the webhook with its deliveries. Needs `webhooks:delete` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        self._send_none("DELETE", f"/webhooks/{quote(id)}", if_match=if_match)

    def list_deliveries(self, id: str, *, limit: int | None = None, cursor: str | None = None, result: Literal["delivered", "failed"] | None = None) -> WebhookDeliveryPage:
        """Lists the attempts to send items, the newest first. The subject of an event decides to which of four parts its item belongs. Of each part, of its replays, and of the tests, the last 128 attempts are kept, without the content of requests and responses. Needs `webhooks:read` in the whole tenant."""
        return cast('WebhookDeliveryPage', self._send_json("GET", f"/webhooks/{quote(id)}/deliveries", query={"limit": limit, "cursor": cursor, "result": result}))

    def iter_deliveries(self, id: str, *, limit: int | None = None, result: Literal["delivered", "failed"] | None = None) -> Iterator[WebhookDelivery]:
        """Yields the items of all pages of list_deliveries."""
        return self._iterate("GET", f"/webhooks/{quote(id)}/deliveries", query={"limit": limit, "result": result})

    def replay_webhook(self, id: str, body: Replay) -> None:
        """Sends the items of a time again, as far as their events are kept. The items have the same IDs as before, and the values that the service account may read now. New items are sent at the same time. A replay ends an earlier one. Needs `webhooks:update` in the whole tenant."""
        self._send_none("POST", f"/webhooks/{quote(id)}/replay", body=body)

    def rotate_secret(self, id: str, *, if_match: str | None = None) -> CreatedWebhook:
        """Gives the webhook a new secret, which is returned only once. For 24 hours, each request has two signatures: one with the new and one with the old secret. Needs `webhooks:update` and `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedWebhook', self._send_json("POST", f"/webhooks/{quote(id)}/rotate-secret", if_match=if_match))

    def skip_items(self, id: str, body: SkipItems | None = None) -> None:
        """Continues after the items that fail: of each part of the webhook, the first item that could not be delivered is not sent again. With all, no item of an event until now is sent, and a replay ends. Needs `webhooks:update` in the whole tenant."""
        self._send_none("POST", f"/webhooks/{quote(id)}/skip", body=body)

    def test_webhook(self, id: str) -> WebhookTestItem:
        """Sends one item of the type webhook.test, also if the webhook is disabled. The result is in the list of deliveries. A failed test is not repeated. Needs `webhooks:update` in the whole tenant."""
        return cast('WebhookTestItem', self._send_json("POST", f"/webhooks/{quote(id)}/test"))


class AsyncOperations(AsyncSender):
    """The operations of the API, for asyncio."""

    async def list_access(self, *, permission: SinglePermission, limit: int | None = None, cursor: str | None = None, department: str | None = None) -> AccessPage:
        """Lists the users and then the service accounts that have the permission through their roles, also by a wildcard, with the roles that give it. It includes pending and suspended ones. Expired assignments and deleted users are not listed. Of the users, it lists only those whose roles the caller may read. A page can be short or empty although nextCursor is not null. Needs `roles:read`, and a permission to read at least one member of users. Service accounts are listed only to callers with `service-accounts:read` in the whole tenant."""
        return cast('AccessPage', await self._send_json("GET", "/access", query={"limit": limit, "cursor": cursor, "permission": permission, "department": department}))

    def iter_access(self, *, permission: SinglePermission, limit: int | None = None, department: str | None = None) -> AsyncIterator[Access]:
        """Yields the items of all pages of list_access."""
        return self._iterate("GET", "/access", query={"limit": limit, "permission": permission, "department": department})

    async def check(self, *, permission: SinglePermission, department: str | None = None) -> None:
        """The answer is 204 if the caller has the permission, and 403 otherwise."""
        await self._send_none("GET", "/auths/check", query={"permission": permission, "department": department})

    async def check_all(self, body: CheckPermissions) -> CheckedPermissions:
        """Checks up to 200 permissions of the caller."""
        return cast('CheckedPermissions', await self._send_json("POST", "/auths/checks", body=body))

    async def exchange_code(self, body: ExchangeCode) -> SignIn:
        """Starts a session with the code that returnTo got after a sign-in with an identity provider. A code works once, for one minute, and only with the verifier of codeChallenge. If a second factor is needed, the answer is 401 with a challenge, and no session is started."""
        return cast('SignIn', await self._send_json("POST", "/auths/codes/exchange", body=body))

    async def confirm(self, body: Confirm) -> ConfirmedSession:
        """Verifies the password, or the code of a sign-in with an identity provider (connectionCode). It also verifies the second factor if the user has one, unless the identity provider has proved a second factor. After that, the session can use operations that need a recent sign-in. Its token is replaced, as by a refresh. Needs a session: API tokens and operator keys are refused."""
        return cast('ConfirmedSession', await self._send_json("POST", "/auths/confirm", body=body))

    async def list_offered_connections(self) -> OfferedConnectionPage:
        """Lists the names of the tenant's connections, for a sign-in page. A tenant that does not exist has the same response as one without connections."""
        return cast('OfferedConnectionPage', await self._send_json("GET", "/auths/connections"))

    async def find_connection(self, body: FindConnection) -> FoundConnection:
        """Returns the connection that has the domain of the address. Only the domain counts, so the response does not reveal whether a user has the address."""
        return cast('FoundConnection', await self._send_json("POST", "/auths/connections/find", body=body))

    async def change_email(self, body: ChangeEmail) -> None:
        """Sets the email address with the token of a mailed link, and ends all sessions of the user except that of the request. It starts no session."""
        await self._send_none("POST", "/auths/email-changes/complete", body=body)

    async def get_factors(self) -> Factors:
        """Returns the caller's second factors, without their secrets. Needs a session: API tokens and operator keys are refused."""
        return cast('Factors', await self._send_json("GET", "/auths/factors"))

    async def accept_invitation(self, body: AcceptInvitation) -> SignIn:
        """Sets the password and starts a session. All other sessions and API tokens of the user end. If a second factor is needed, the password is set, and the answer is 401 with a challenge."""
        return cast('SignIn', await self._send_json("POST", "/auths/invitations/accept", body=body))

    async def login(self, body: Login) -> SignIn:
        """Starts a session, and ends the session of the request. If a second factor is needed, the answer is 401 with a challenge, and no session is started."""
        return cast('SignIn', await self._send_json("POST", "/auths/login", body=body))

    async def begin_enrolment(self, body: BeginEnrolment) -> Enrolment:
        """For a sign-in that was answered with second-factor-enrolment-required. Complete the sign-in with POST /auths/login/second-factor."""
        return cast('Enrolment', await self._send_json("POST", "/auths/login/enrolment", body=body))

    async def complete_login(self, body: CompleteLogin) -> SignIn:
        """Answers the challenge of a sign-in with a code, a recovery code or a passkey. To enroll a second factor, send its first code or the new passkey. A challenge is valid for five minutes and accepts five answers."""
        return cast('SignIn', await self._send_json("POST", "/auths/login/second-factor", body=body))

    async def logout(self) -> None:
        """Ends the session of the request, if any, and clears the cookie."""
        await self._send_none("POST", "/auths/logout")

    async def link_oidc(self, body: OidcCode) -> Identity:
        """Lets the caller sign in with an account of an identity provider. Start with POST /auths/oidc/start and the purpose link, and send the code that returnTo got. It works in the same session, once, for five minutes. The user is notified by mail. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('Identity', await self._send_json("POST", "/auths/oidc/link", body=body))

    async def sign_out_oidc(self, body: SignOutOidc) -> SignedOutOidc:
        """Ends the session of the request, if any, and clears the cookie, as POST /auths/logout does. If the session began with an identity provider that supports it, the response has the URL at which the browser signs out there. The identity provider then returns the browser to returnTo, if this address is registered there too. If the identity provider cannot be reached, the session ends all the same, and the URL is null."""
        return cast('SignedOutOidc', await self._send_json("POST", "/auths/oidc/sign-out", body=body))

    async def start_oidc(self, body: StartOidc) -> StartedOidc:
        """Returns a URL of Rolecall. Let the browser open it within two minutes. It leads to the identity provider of the connection, and from there back to returnTo, with the parameter code. To start a session, send the code to POST /auths/codes/exchange with the verifier of codeChallenge. Keep the verifier where only this browser or app can use it. With the purpose confirm, send the code to POST /auths/confirm, and with the purpose link, to POST /auths/oidc/link. If the sign-in fails, returnTo gets the parameter error: sign-in-refused, identity-unknown or connection-unavailable."""
        return cast('StartedOidc', await self._send_json("POST", "/auths/oidc/start", body=body))

    async def create_passkey(self, body: CreatePasskey, *, idempotency_key: str | None = None) -> CreatedPasskey:
        """Makes the passkey a second factor, and ends all other sessions of the user. The passkey can also replace the password. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedPasskey', await self._send_json("POST", "/auths/passkeys", body=body, key=idempotency_key or new_key()))

    async def get_passkey_options(self) -> PasskeyOptions:
        """Returns options for navigator.credentials.create. Send its result to POST /auths/passkeys within five minutes. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('PasskeyOptions', await self._send_json("POST", "/auths/passkeys/options"))

    async def sign_in_by_passkey(self, body: SignInByPasskey) -> SignIn:
        """Starts a session without a password. The authenticator must verify the user, so the passkey counts as two factors."""
        return cast('SignIn', await self._send_json("POST", "/auths/passkeys/sign-in", body=body))

    async def get_passkey_sign_in_options(self) -> PasskeyOptions:
        """Returns options for navigator.credentials.get. Send its result to POST /auths/passkeys/sign-in within five minutes."""
        return cast('PasskeyOptions', await self._send_json("POST", "/auths/passkeys/sign-in-options"))

    async def update_passkey(self, passkey_id: str, body: UpdatePasskey) -> Passkey:
        """Changes the name of the passkey. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('Passkey', await self._send_json("PATCH", f"/auths/passkeys/{quote(passkey_id)}", body=body))

    async def delete_passkey(self, passkey_id: str) -> None:
        """Removes the passkey and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/auths/passkeys/{quote(passkey_id)}")

    async def change_password(self, body: ChangePassword) -> None:
        """Sets a new password and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused."""
        await self._send_none("PUT", "/auths/password", body=body)

    async def request_password_reset(self, body: EmailAddress) -> Accepted:
        """Mails a link to set a new password to the active user with this address. The answer is the same for every address."""
        return cast('Accepted', await self._send_json("POST", "/auths/password-resets", body=body))

    async def reset_password(self, body: ResetPassword) -> None:
        """Sets the password with the token of a mailed link, and ends all sessions and API tokens of the user. It starts no session. Failed sign-ins of the account until now are no longer counted. Wrong second factors are still counted."""
        await self._send_none("POST", "/auths/password-resets/complete", body=body)

    async def make_recovery_codes(self) -> CreatedRecoveryCodes:
        """Creates ten recovery codes, makes all earlier ones invalid, and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedRecoveryCodes', await self._send_json("POST", "/auths/recovery-codes"))

    async def refresh(self) -> SignIn:
        """Replaces the token of the session. The old token works for refreshGraceSeconds after the new one is first used."""
        return cast('SignIn', await self._send_json("POST", "/auths/refresh"))

    async def get_session(self, *, touch: bool | None = None) -> CurrentSession:
        """Returns the caller with the caller's roles and permissions, and the session if the request has one."""
        return cast('CurrentSession', await self._send_json("GET", "/auths/session", query={"touch": touch}))

    async def begin_totp(self) -> TotpSecret:
        """Returns a secret for the app. The app becomes a second factor when you confirm it with a code. Until then, an existing app stays in use. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('TotpSecret', await self._send_json("POST", "/auths/totp"))

    async def delete_totp(self) -> None:
        """Removes the app and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", "/auths/totp")

    async def confirm_totp(self, body: ConfirmTotp) -> CreatedRecoveryCodes:
        """Verifies a code of the app, makes the app a second factor, and ends all other sessions of the user. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedRecoveryCodes', await self._send_json("POST", "/auths/totp/confirm", body=body))

    async def list_changes(self, *, after: str | None = None, at: Literal["now"] | None = None, type: str | None = None, limit: int | None = None, wait: int | None = None) -> Changes:
        """Returns the events of the tenant in a fixed order, the oldest first. No event ever appears before the cursor of a response. If a change depends on another one, its event comes after that of the other one. To copy the data of a tenant, first get a cursor with at=now, then read the lists, and then follow the changes after this cursor. Items are CloudEvents 1.0. They have no secrets and no IP addresses. Needs `changes:read` in the whole tenant. An operator key needs the scope `changes` or `all`."""
        return cast('Changes', await self._send_json("GET", "/changes", query={"after": after, "at": at, "type": type, "limit": limit, "wait": wait}))

    async def list_connections(self) -> ConnectionPage:
        """Lists all connections of the tenant to identity providers, the oldest first. A tenant can have 20. Needs `connections:read` in the whole tenant."""
        return cast('ConnectionPage', await self._send_json("GET", "/connections"))

    async def create_connection(self, body: CreateConnection, *, idempotency_key: str | None = None) -> Connection:
        """Creates a connection to an identity provider (OpenID Connect). Users of the tenant can then sign in with it. Then register the path /auths/oidc/callback/{id} of the public URL, with the ID of the connection, as the redirect URI at the identity provider. Each connection has another redirect URI. A user who can configure a connection can become any other user, so this needs all permissions. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Connection', await self._send_json("POST", "/connections", body=body, key=idempotency_key or new_key()))

    async def get_connection(self, id: str) -> Connection:
        """Returns the connection, without its client secret. Needs `connections:read` in the whole tenant."""
        return cast('Connection', await self._send_json("GET", f"/connections/{quote(id)}"))

    async def update_connection(self, id: str, body: UpdateConnection, *, if_match: str | None = None) -> Connection:
        """Changes the members that are in the body. The issuer cannot be changed: create another connection. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Connection', await self._send_json("PATCH", f"/connections/{quote(id)}", body=body, if_match=if_match))

    async def delete_connection(self, id: str, *, force: bool | None = None, if_match: str | None = None) -> None:
        """If users have identities of the connection, the answer is 409. With force=true, these identities are deleted too, and the sessions that began with them end. The event has their numbers. The groups of the connection remain with their members, without a source. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/connections/{quote(id)}", query={"force": force}, if_match=if_match)

    async def test_connection(self, id: str) -> ConnectionReport:
        """Fetches the metadata and the keys of the identity provider. The response lists the problems because of which users cannot sign in. The client secret can only be tested by signing in. Needs `connections:read` in the whole tenant."""
        return cast('ConnectionReport', await self._send_json("POST", f"/connections/{quote(id)}/test"))

    async def list_directories(self) -> DirectoryPage:
        """Lists all directories of the tenant, the oldest first. A tenant can have 20. Needs `connections:read` in the whole tenant."""
        return cast('DirectoryPage', await self._send_json("GET", "/directories"))

    async def create_directory(self, body: CreateDirectory, *, idempotency_key: str | None = None) -> Directory:
        """Creates a directory, through which an identity provider creates, changes and suspends users and groups with SCIM 2.0 (RFC 7644). Then create a token, and enter it at the identity provider with the base URL: the public URL, /scim/v2/ and the name of the tenant. A user who can configure a directory can become any other user except owners, so this needs all permissions. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Directory', await self._send_json("POST", "/directories", body=body, key=idempotency_key or new_key()))

    async def get_directory(self, id: str) -> Directory:
        """Returns the directory. Needs `connections:read` in the whole tenant."""
        return cast('Directory', await self._send_json("GET", f"/directories/{quote(id)}"))

    async def update_directory(self, id: str, body: UpdateDirectory, *, if_match: str | None = None) -> Directory:
        """Changes the members that are in the body. While a directory is paused, its requests get 503. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('Directory', await self._send_json("PATCH", f"/directories/{quote(id)}", body=body, if_match=if_match))

    async def delete_directory(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the directory and its tokens. Its users and groups remain, with their memberships, and can then be changed here. If a group without a source has the name of one of its groups, the name of the directory is appended. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/directories/{quote(id)}", if_match=if_match)

    async def list_directory_requests(self, id: str) -> DirectoryRequestPage:
        """Lists the last 100 requests that the identity provider has sent with a token of the directory, the newest first. A request appears after about a second. Needs `connections:read` in the whole tenant."""
        return cast('DirectoryRequestPage', await self._send_json("GET", f"/directories/{quote(id)}/requests"))

    async def list_directory_tokens(self, id: str) -> DirectoryTokenPage:
        """Lists the tokens of the directory without their secrets, the oldest first. Expired tokens are listed for 30 days. Needs `connections:read` in the whole tenant."""
        return cast('DirectoryTokenPage', await self._send_json("GET", f"/directories/{quote(id)}/tokens"))

    async def create_directory_token(self, id: str, body: CreateDirectoryToken, *, idempotency_key: str | None = None) -> CreatedDirectoryToken:
        """Creates a token with which the identity provider sends SCIM requests. The response to the first request has the secret, and no other response has it. A directory can have two tokens, so that one can replace the other. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedDirectoryToken', await self._send_json("POST", f"/directories/{quote(id)}/tokens", body=body, key=idempotency_key or new_key()))

    async def revoke_directory_token(self, id: str, token_id: str) -> None:
        """The next request with the token gets 401. Needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused."""
        await self._send_none("DELETE", f"/directories/{quote(id)}/tokens/{quote(token_id)}")

    async def list_events(self, *, limit: int | None = None, cursor: str | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> EventPage:
        """Lists the events of the tenant (the audit log), newest first. Needs `events:read` in the whole tenant."""
        return cast('EventPage', await self._send_json("GET", "/events", query={"limit": limit, "cursor": cursor, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject}))

    def iter_events(self, *, limit: int | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> AsyncIterator[Event]:
        """Yields the items of all pages of list_events."""
        return self._iterate("GET", "/events", query={"limit": limit, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject})

    async def get_checkpoint(self) -> Checkpoint:
        """Returns the signed state of the log that all events of the tenant form: a Merkle tree as in RFC 6962, whose leaves are the events in the order of GET /changes. Save checkpoints outside of the service. With a checkpoint, you can prove later that no event before it was changed or removed. Needs `events:read` in the whole tenant."""
        return cast('Checkpoint', await self._send_json("GET", "/events/checkpoint"))

    async def get_consistency(self, *, from_: int) -> ConsistencyProof:
        """Returns the proof that the log begins with exactly the events of an earlier checkpoint. Needs `events:read` in the whole tenant."""
        return cast('ConsistencyProof', await self._send_json("GET", "/events/consistency", query={"from": from_}))

    async def get_event_proof(self, id: str) -> EventProof:
        """Returns the leaf of the event, the proof that it is in the log, and the checkpoint to verify both. An erasure of a person removes data from events. Their leaves have salted commitments to the data, and stay valid. Needs `events:read` in the whole tenant."""
        return cast('EventProof', await self._send_json("GET", f"/events/{quote(id)}/proof"))

    async def export_events(self, *, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, raw: bool | None = None, subject: str | None = None) -> bytes:
        """Exports the events of the tenant as a CSV file, newest first, with the filters of GET /events. The columns before and after have JSON. The columns actor.name and subject.name have the names of the actor and of the user, role or service account that the event is about, if the caller may read them. The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503. Needs `events:read` in the whole tenant."""
        return await self._send_bytes("GET", "/exports/events", query={"type": type, "actor": actor, "from": from_, "to": to, "raw": raw, "subject": subject})

    async def export_role_users(self, id: str, *, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, raw: bool | None = None, direct: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None) -> bytes:
        """Exports the users with the role as a CSV file, with the columns of GET /exports/users and the filters of GET /roles/{id}/users. The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503. Needs `roles:read`, and a permission to read at least one member of users."""
        return await self._send_bytes("GET", f"/exports/roles/{quote(id)}/users", query={"sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "raw": raw, "direct": direct, "status": status})

    async def export_users(self, *, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, raw: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None, role: str | None = None, group: str | None = None) -> bytes:
        """Exports the users that the caller may read as a CSV file, with the filters of GET /users. The columns are the ID and the members that the caller may read of some user. A cell is empty if the caller may not read the member of this user. The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503. Needs `users:read`, or `users.<member>:read` for at least one member."""
        return await self._send_bytes("GET", "/exports/users", query={"sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "raw": raw, "status": status, "role": role, "group": group})

    async def list_groups(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, external_id: str | None = None, count: bool | None = None) -> GroupPage:
        """Lists the groups of the tenant. Needs `groups:read` in the whole tenant."""
        return cast('GroupPage', await self._send_json("GET", "/groups", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "externalId": external_id, "count": count}))

    def iter_groups(self, *, limit: int | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, external_id: str | None = None) -> AsyncIterator[Group]:
        """Yields the items of all pages of list_groups."""
        return self._iterate("GET", "/groups", query={"limit": limit, "sort": sort, "q": q, "externalId": external_id})

    async def create_group(self, body: CreateGroup, *, idempotency_key: str | None = None) -> Group:
        """Creates a group without members and roles. With source, the directory or the connection fills it. Needs `groups:create` in the whole tenant. With `source`, it also needs all permissions of Rolecall and of all applications, in the whole tenant, without expiry. API tokens are refused."""
        return cast('Group', await self._send_json("POST", "/groups", body=body, key=idempotency_key or new_key()))

    async def get_group(self, id: str) -> Group:
        """Returns the group. Needs `groups:read` in the whole tenant."""
        return cast('Group', await self._send_json("GET", f"/groups/{quote(id)}"))

    async def update_group(self, id: str, body: UpdateGroup, *, if_match: str | None = None) -> Group:
        """Changes the members that are in the body. Of a group with a source, only the description can be changed. Needs `groups:update` in the whole tenant."""
        return cast('Group', await self._send_json("PATCH", f"/groups/{quote(id)}", body=body, if_match=if_match))

    async def delete_group(self, id: str, *, force: bool | None = None, if_match: str | None = None) -> None:
        """Deletes the group. Its members lose the roles that they have only through the group. If the group has roles, the answer is 409. With force=true, it is deleted with its roles. A group with a source cannot be deleted. Needs `groups:delete` in the whole tenant. The caller must be able to assign every role of the group. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/groups/{quote(id)}", query={"force": force}, if_match=if_match)

    async def list_group_roles(self, id: str, *, limit: int | None = None, cursor: str | None = None, include_expired: bool | None = None) -> AssignmentPage:
        """Lists the group's role assignments that have not expired. With includeExpired=true, expired ones are listed too. Needs `groups:read` in the whole tenant."""
        return cast('AssignmentPage', await self._send_json("GET", f"/groups/{quote(id)}/roles", query={"limit": limit, "cursor": cursor, "includeExpired": include_expired}))

    def iter_group_roles(self, id: str, *, limit: int | None = None, include_expired: bool | None = None) -> AsyncIterator[Assignment]:
        """Yields the items of all pages of list_group_roles."""
        return self._iterate("GET", f"/groups/{quote(id)}/roles", query={"limit": limit, "includeExpired": include_expired})

    async def assign_group_role(self, id: str, role_id: str, body: AssignRole | None = None) -> Assignment:
        """Gives the role to all members of the group, for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the group. Needs `roles:assign` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Assignment', await self._send_json("PUT", f"/groups/{quote(id)}/roles/{quote(role_id)}", body=body))

    async def unassign_group_role(self, id: str, role_id: str) -> None:
        """Removes the role from the group. Its members lose the role, unless they have it in another way. Needs `roles:assign` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/groups/{quote(id)}/roles/{quote(role_id)}")

    async def list_group_users(self, id: str, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, count: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None) -> UserPage:
        """Lists the users who are in the group, as far as the caller may read them. Needs `groups:read` in the whole tenant, and a permission to read at least one member of users."""
        return cast('UserPage', await self._send_json("GET", f"/groups/{quote(id)}/users", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "count": count, "status": status}))

    def iter_group_users(self, id: str, *, limit: int | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, status: Literal["pending", "active", "suspended"] | None = None) -> AsyncIterator[User]:
        """Yields the items of all pages of list_group_users."""
        return self._iterate("GET", f"/groups/{quote(id)}/users", query={"limit": limit, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "status": status})

    async def add_group_user(self, id: str, user_id: str) -> None:
        """Adds the user to the group. The user then has the roles of the group. If the user is a member already, nothing changes. The members of a group with a source can be changed only at the identity provider. Needs `groups:members`. If the group has roles, it also needs `roles:assign`, and the caller must be able to assign every role of the group to the user. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("PUT", f"/groups/{quote(id)}/users/{quote(user_id)}")

    async def remove_group_user(self, id: str, user_id: str) -> None:
        """Removes the user from the group. The user loses the roles that the user has only through the group. The members of a group with a source can be changed only at the identity provider. Needs `groups:members`. If the group has roles, it also needs `roles:assign`, and the caller must be able to remove every role of the group from the user. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/groups/{quote(id)}/users/{quote(user_id)}")

    async def list_invitations(self, *, limit: int | None = None, cursor: str | None = None) -> InvitationPage:
        """Lists the invitations that were not accepted and have not expired, of users that the caller may invite. Needs `users:invite`."""
        return cast('InvitationPage', await self._send_json("GET", "/invitations", query={"limit": limit, "cursor": cursor}))

    def iter_invitations(self, *, limit: int | None = None) -> AsyncIterator[OpenInvitation]:
        """Yields the items of all pages of list_invitations."""
        return self._iterate("GET", "/invitations", query={"limit": limit})

    async def list_jobs(self, *, limit: int | None = None, cursor: str | None = None) -> JobPage:
        """Lists the jobs that the caller started, newest first. Callers with events:read in the whole tenant get all jobs. Jobs are kept for 7 days after their end. Needs no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs."""
        return cast('JobPage', await self._send_json("GET", "/jobs", query={"limit": limit, "cursor": cursor}))

    def iter_jobs(self, *, limit: int | None = None) -> AsyncIterator[Job]:
        """Yields the items of all pages of list_jobs."""
        return self._iterate("GET", "/jobs", query={"limit": limit})

    async def start_assign_role_job(self, body: StartAssignJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that assigns the role to each user as PUT /users/{id}/roles/{roleId} does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `roles:assign`, and a permission to read at least one member of users. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Job', await self._send_json("POST", "/jobs/assign-role", body=body, key=idempotency_key or new_key()))

    async def start_resume_users_job(self, body: StartStatusJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that resumes each user as POST /users/{id}/resume does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `users:suspend`, and a permission to read at least one member of users. With a session, needs a recent sign-in or re-authentication."""
        return cast('Job', await self._send_json("POST", "/jobs/resume-users", body=body, key=idempotency_key or new_key()))

    async def start_suspend_users_job(self, body: StartStatusJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that suspends each user as POST /users/{id}/suspend does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `users:suspend`, and a permission to read at least one member of users."""
        return cast('Job', await self._send_json("POST", "/jobs/suspend-users", body=body, key=idempotency_key or new_key()))

    async def start_unassign_role_job(self, body: StartUnassignJob, *, idempotency_key: str | None = None) -> Job:
        """Starts a job that removes the role from each user as DELETE /users/{id}/roles/{roleId} does. The job runs in the background and visits the matching users in the order of their IDs. It uses the filter when it reaches a user, and skips users that were created after its start. Each change is authorized with the permissions that the caller has at that time, and is recorded in its own event. The job stops when the caller can no longer start it, or when the session or the API token of this request is revoked or expires. It does not change the caller. A tenant can have 5 running jobs. Needs `roles:assign`, and a permission to read at least one member of users. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Job', await self._send_json("POST", "/jobs/unassign-role", body=body, key=idempotency_key or new_key()))

    async def get_job(self, id: str) -> Job:
        """Returns the job with its progress. Needs no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs."""
        return cast('Job', await self._send_json("GET", f"/jobs/{quote(id)}"))

    async def cancel_job(self, id: str) -> Job:
        """Ends the job before it changes more users. Users that it has changed stay changed. If the job has ended, it does not change. Needs no permission for jobs that the caller started. For other jobs, it needs `events:read` and the permission of the change, both in the whole tenant."""
        return cast('Job', await self._send_json("POST", f"/jobs/{quote(id)}/cancel"))

    async def list_job_results(self, id: str, *, limit: int | None = None, cursor: str | None = None, outcome: Literal["changed", "unchanged", "refused"] | None = None) -> JobResultPage:
        """Lists the users that the job has visited, in the order of their IDs. Of each job, the first 10,000 refused users and the first 10,000 other users are kept. Needs no permission for jobs that the caller started, and `events:read` in the whole tenant for other jobs."""
        return cast('JobResultPage', await self._send_json("GET", f"/jobs/{quote(id)}/results", query={"limit": limit, "cursor": cursor, "outcome": outcome}))

    def iter_job_results(self, id: str, *, limit: int | None = None, outcome: Literal["changed", "unchanged", "refused"] | None = None) -> AsyncIterator[JobResult]:
        """Yields the items of all pages of list_job_results."""
        return self._iterate("GET", f"/jobs/{quote(id)}/results", query={"limit": limit, "outcome": outcome})

    async def operator_list_changes(self, *, after: str | None = None, at: Literal["now"] | None = None, type: str | None = None, limit: int | None = None, wait: int | None = None) -> Changes:
        """Returns the events of all tenants that the operator key may access, in a fixed order, as GET /changes does for one tenant. The events of a tenant have the same order as there. No event ever appears at or before a cursor that was returned. The answer is 410 if an event after the cursor was deleted in any tenant, if the tenant of an event after the cursor was purged, or if the database has lost commits. The operator key needs the scope `changes` or `all`."""
        return cast('Changes', await self._send_json("GET", "/operator/changes", query={"after": after, "at": at, "type": type, "limit": limit, "wait": wait}))

    async def operator_list_events(self, *, limit: int | None = None, cursor: str | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> EventPage:
        """Lists what operators have done in the whole instance, the newest first: operator keys that were created and revoked, tenants that were created, suspended, resumed, deleted and restored, and changes of the webhooks of operators. The events remain after the data of a tenant was removed. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('EventPage', await self._send_json("GET", "/operator/events", query={"limit": limit, "cursor": cursor, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject}))

    def operator_iter_events(self, *, limit: int | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None, subject: str | None = None) -> AsyncIterator[Event]:
        """Yields the items of all pages of operator_list_events."""
        return self._iterate("GET", "/operator/events", query={"limit": limit, "type": type, "actor": actor, "from": from_, "to": to, "subject": subject})

    async def operator_get_checkpoint(self) -> Checkpoint:
        """Returns the signed size and root of the Merkle log of the operators, as GET /events/checkpoint does for a tenant. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('Checkpoint', await self._send_json("GET", "/operator/events/checkpoint"))

    async def operator_get_consistency(self, *, from_: int) -> ConsistencyProof:
        """Returns the proof that the operators' log begins with the events of an earlier checkpoint. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('ConsistencyProof', await self._send_json("GET", "/operator/events/consistency", query={"from": from_}))

    async def operator_get_event_proof(self, id: str) -> EventProof:
        """Returns the proof that the event is in the operators' log, as GET /events/{id}/proof does for a tenant. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('EventProof', await self._send_json("GET", f"/operator/events/{quote(id)}/proof"))

    async def operator_list_tenants(self, *, limit: int | None = None, cursor: str | None = None, status: Literal["active", "suspended", "deleted"] | None = None) -> TenantPage:
        """Lists the tenants that the operator key may access, sorted by name. The operator key needs the scope `tenants` or `all`."""
        return cast('TenantPage', await self._send_json("GET", "/operator/tenants", query={"limit": limit, "cursor": cursor, "status": status}))

    def operator_iter_tenants(self, *, limit: int | None = None, status: Literal["active", "suspended", "deleted"] | None = None) -> AsyncIterator[Tenant]:
        """Yields the items of all pages of operator_list_tenants."""
        return self._iterate("GET", "/operator/tenants", query={"limit": limit, "status": status})

    async def operator_create_tenant(self, body: CreateTenant, *, idempotency_key: str | None = None) -> FoundedTenant:
        """Creates a tenant with the built-in roles, and mails an invitation to its first owner, unless `delivery` is `return`. The answer also has the link of the invitation. It is returned only once. Needs an operator key for all tenants. The operator key needs the scope `tenants` or `all`."""
        return cast('FoundedTenant', await self._send_json("POST", "/operator/tenants", body=body, key=idempotency_key or new_key()))

    async def operator_get_tenant(self, name: str) -> Tenant:
        """Returns the tenant with its settings, also while it is deleted and can be restored. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', await self._send_json("GET", f"/operator/tenants/{quote(name)}"))

    async def operator_update_tenant(self, name: str, body: UpdateTenant, *, if_match: str | None = None) -> Tenant:
        """Changes the display name and the settings that are in the body. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', await self._send_json("PATCH", f"/operator/tenants/{quote(name)}", body=body, if_match=if_match))

    async def operator_delete_tenant(self, name: str, *, if_match: str | None = None) -> None:
        """Makes the tenant unavailable at once. It can be restored for 24 hours. After that, its data is removed. Its name cannot be used again for 30 days. The operator key needs the scope `tenants` or `all`."""
        await self._send_none("DELETE", f"/operator/tenants/{quote(name)}", if_match=if_match)

    async def operator_restore_tenant(self, name: str, body: EventReason | None = None) -> Tenant:
        """Restores a tenant that was deleted in the last 24 hours, with its users, roles, sessions and API tokens. A tenant that is not deleted does not change. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', await self._send_json("POST", f"/operator/tenants/{quote(name)}/restore", body=body))

    async def operator_resume_tenant(self, name: str, body: EventReason | None = None) -> Tenant:
        """Lets the users and API tokens of a suspended tenant work again. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', await self._send_json("POST", f"/operator/tenants/{quote(name)}/resume", body=body))

    async def operator_suspend_tenant(self, name: str, body: EventReason | None = None) -> Tenant:
        """Refuses all sign-ins, sessions and API tokens of the tenant until it is resumed. No data is deleted. The operator key needs the scope `tenants` or `all`."""
        return cast('Tenant', await self._send_json("POST", f"/operator/tenants/{quote(name)}/suspend", body=body))

    async def operator_find_users(self, *, email: str, limit: int | None = None, cursor: str | None = None) -> UserInTenantPage:
        """Lists the users with the email address in all tenants that the operator key may access, also users and tenants that are suspended. A page that asks for an address and then shows the tenants of its owner must not show them to others: mail them, or sign in first. An operator key can do 600 searches in a minute. The operator key needs the scope `lookup` or `all`."""
        return cast('UserInTenantPage', await self._send_json("GET", "/operator/users", query={"limit": limit, "cursor": cursor, "email": email}))

    def operator_iter_users(self, *, email: str, limit: int | None = None) -> AsyncIterator[UserInTenant]:
        """Yields the items of all pages of operator_find_users."""
        return self._iterate("GET", "/operator/users", query={"limit": limit, "email": email})

    async def operator_list_webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> OperatorWebhookPage:
        """Lists the webhooks of the operators of the instance, the oldest first. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('OperatorWebhookPage', await self._send_json("GET", "/operator/webhooks", query={"limit": limit, "cursor": cursor}))

    def operator_iter_webhooks(self, *, limit: int | None = None) -> AsyncIterator[OperatorWebhook]:
        """Yields the items of all pages of operator_list_webhooks."""
        return self._iterate("GET", "/operator/webhooks", query={"limit": limit})

    async def operator_create_webhook(self, body: CreateOperatorWebhook, *, idempotency_key: str | None = None) -> CreatedOperatorWebhook:
        """Creates a webhook, which sends the items of GET /operator/changes, those of all tenants with all values, to a URL. Each request has the headers of Standard Webhooks, with a signature. The secret is returned only once. The webhook does not depend on the key that created it. The instance can have 20 webhooks of operators. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('CreatedOperatorWebhook', await self._send_json("POST", "/operator/webhooks", body=body, key=idempotency_key or new_key()))

    async def operator_get_webhook(self, id: str) -> OperatorWebhook:
        """Returns the webhook, without its secret. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('OperatorWebhook', await self._send_json("GET", f"/operator/webhooks/{quote(id)}"))

    async def operator_update_webhook(self, id: str, body: UpdateOperatorWebhook, *, if_match: str | None = None) -> OperatorWebhook:
        """Changes the members that are in the body. Items that could not be delivered are sent again at once. A webhook that is enabled again continues with the first item that was not delivered. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('OperatorWebhook', await self._send_json("PATCH", f"/operator/webhooks/{quote(id)}", body=body, if_match=if_match))

    async def operator_delete_webhook(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the webhook with its deliveries. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        await self._send_none("DELETE", f"/operator/webhooks/{quote(id)}", if_match=if_match)

    async def operator_list_deliveries(self, id: str, *, limit: int | None = None, cursor: str | None = None, result: Literal["delivered", "failed"] | None = None) -> WebhookDeliveryPage:
        """Lists the attempts to send items, the newest first, as GET /webhooks/{id}/deliveries does for a webhook of a tenant. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('WebhookDeliveryPage', await self._send_json("GET", f"/operator/webhooks/{quote(id)}/deliveries", query={"limit": limit, "cursor": cursor, "result": result}))

    def operator_iter_deliveries(self, id: str, *, limit: int | None = None, result: Literal["delivered", "failed"] | None = None) -> AsyncIterator[WebhookDelivery]:
        """Yields the items of all pages of operator_list_deliveries."""
        return self._iterate("GET", f"/operator/webhooks/{quote(id)}/deliveries", query={"limit": limit, "result": result})

    async def operator_replay_webhook(self, id: str, body: Replay) -> None:
        """Sends the items of a time again, as far as their events are kept and no event after them was deleted. The items have the same IDs as before. New items are sent at the same time. A replay ends an earlier one. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        await self._send_none("POST", f"/operator/webhooks/{quote(id)}/replay", body=body)

    async def operator_rotate_secret(self, id: str, *, if_match: str | None = None) -> CreatedOperatorWebhook:
        """Gives the webhook a new secret, which is returned only once. For 24 hours, each request has two signatures: one with the new and one with the old secret. Needs an operator key for all tenants. The operator key needs the scope `all`."""
        return cast('CreatedOperatorWebhook', await self._send_json("POST", f"/operator/webhooks/{quote(id)}/rotate-secret", if_match=if_match))

    async def operator_skip_items(self, id: str, body: SkipItems | None = None) -> None:
        """Continues after the items that fail: of each part of the webhook, the first item that could not be delivered is not sent again. With all, no item of an event that is in the change feed of all tenants now is sent, and a replay ends. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        await self._send_none("POST", f"/operator/webhooks/{quote(id)}/skip", body=body)

    async def operator_test_webhook(self, id: str) -> WebhookTestItem:
        """Sends one item of the type webhook.test, also if the webhook is disabled. Its tenant is an empty text. The result is in the list of deliveries. A failed test is not repeated. Needs an operator key for all tenants. The operator key needs the scope `changes` or `all`."""
        return cast('WebhookTestItem', await self._send_json("POST", f"/operator/webhooks/{quote(id)}/test"))

    async def list_roles(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, key: str | None = None, permission: SinglePermission | None = None, count: bool | None = None) -> RolePage:
        """Lists the roles of the tenant. Needs `roles:read`."""
        return cast('RolePage', await self._send_json("GET", "/roles", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "key": key, "permission": permission, "count": count}))

    def iter_roles(self, *, limit: int | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, key: str | None = None, permission: SinglePermission | None = None) -> AsyncIterator[Role]:
        """Yields the items of all pages of list_roles."""
        return self._iterate("GET", "/roles", query={"limit": limit, "sort": sort, "q": q, "key": key, "permission": permission})

    async def create_role(self, body: CreateRole, *, idempotency_key: str | None = None) -> Role:
        """Creates a role with the permissions in the body. Needs `roles:create`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Role', await self._send_json("POST", "/roles", body=body, key=idempotency_key or new_key()))

    async def get_role(self, id: str) -> Role:
        """Returns the role with its permissions. Needs `roles:read`."""
        return cast('Role', await self._send_json("GET", f"/roles/{quote(id)}"))

    async def update_role(self, id: str, body: UpdateRole, *, if_match: str | None = None) -> Role:
        """Changes the members that are in the body. The change also applies to the users and service accounts that have the role. Needs `roles:update`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Role', await self._send_json("PATCH", f"/roles/{quote(id)}", body=body, if_match=if_match))

    async def delete_role(self, id: str, *, force: bool | None = None, if_match: str | None = None) -> None:
        """If users, service accounts or groups have the role, the answer is 409. With force=true, the role is removed from all of them. If the setting secondFactor of the tenant names the role, the answer is 409, also with force=true. Needs `roles:delete`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/roles/{quote(id)}", query={"force": force}, if_match=if_match)

    async def list_role_users(self, id: str, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, count: bool | None = None, direct: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None, at: str | None = None) -> UserPage:
        """Lists the users who have the role, directly or through a group, as far as the caller may read them. With at, it lists the users who had the role at an earlier time. Needs `roles:read`, and a permission to read at least one member of users."""
        return cast('UserPage', await self._send_json("GET", f"/roles/{quote(id)}/users", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "count": count, "direct": direct, "status": status, "at": at}))

    def iter_role_users(self, id: str, *, limit: int | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, direct: bool | None = None, status: Literal["pending", "active", "suspended"] | None = None, at: str | None = None) -> AsyncIterator[User]:
        """Yields the items of all pages of list_role_users."""
        return self._iterate("GET", f"/roles/{quote(id)}/users", query={"limit": limit, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "direct": direct, "status": status, "at": at})

    async def list_service_accounts(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None, count: bool | None = None) -> ServiceAccountPage:
        """Lists the service accounts of the tenant. Needs `service-accounts:read` in the whole tenant."""
        return cast('ServiceAccountPage', await self._send_json("GET", "/service-accounts", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "count": count}))

    def iter_service_accounts(self, *, limit: int | None = None, sort: Literal["name", "-name", "createdAt", "-createdAt"] | None = None, q: str | None = None) -> AsyncIterator[ServiceAccount]:
        """Yields the items of all pages of list_service_accounts."""
        return self._iterate("GET", "/service-accounts", query={"limit": limit, "sort": sort, "q": q})

    async def create_service_account(self, body: CreateServiceAccount, *, idempotency_key: str | None = None) -> ServiceAccount:
        """Creates a service account without roles and API tokens. Needs `service-accounts:create` in the whole tenant."""
        return cast('ServiceAccount', await self._send_json("POST", "/service-accounts", body=body, key=idempotency_key or new_key()))

    async def get_service_account(self, id: str) -> ServiceAccount:
        """Returns the service account. Needs `service-accounts:read` in the whole tenant."""
        return cast('ServiceAccount', await self._send_json("GET", f"/service-accounts/{quote(id)}"))

    async def update_service_account(self, id: str, body: UpdateServiceAccount, *, if_match: str | None = None) -> ServiceAccount:
        """Changes the members that are in the body. Needs `service-accounts:update` in the whole tenant."""
        return cast('ServiceAccount', await self._send_json("PATCH", f"/service-accounts/{quote(id)}", body=body, if_match=if_match))

    async def delete_service_account(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the service account with its API tokens and role assignments. It cannot be restored. Needs `service-accounts:delete` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/service-accounts/{quote(id)}", if_match=if_match)

    async def resume_service_account(self, id: str, body: EventReason | None = None) -> ServiceAccount:
        """Lets the API tokens of the service account work again. Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('ServiceAccount', await self._send_json("POST", f"/service-accounts/{quote(id)}/resume", body=body))

    async def list_service_account_roles(self, id: str, *, limit: int | None = None, cursor: str | None = None, include_expired: bool | None = None) -> AssignmentPage:
        """Lists the service account's role assignments that have not expired. With includeExpired=true, expired ones are listed too. Needs `service-accounts:read` in the whole tenant."""
        return cast('AssignmentPage', await self._send_json("GET", f"/service-accounts/{quote(id)}/roles", query={"limit": limit, "cursor": cursor, "includeExpired": include_expired}))

    def iter_service_account_roles(self, id: str, *, limit: int | None = None, include_expired: bool | None = None) -> AsyncIterator[Assignment]:
        """Yields the items of all pages of list_service_account_roles."""
        return self._iterate("GET", f"/service-accounts/{quote(id)}/roles", query={"limit": limit, "includeExpired": include_expired})

    async def assign_service_account_role(self, id: str, role_id: str, body: AssignRole | None = None) -> Assignment:
        """Assigns the role for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the service account. Needs `service-accounts:update` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Assignment', await self._send_json("PUT", f"/service-accounts/{quote(id)}/roles/{quote(role_id)}", body=body))

    async def unassign_service_account_role(self, id: str, role_id: str) -> None:
        """Removes the role from the service account. Needs `service-accounts:update` in the whole tenant. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/service-accounts/{quote(id)}/roles/{quote(role_id)}")

    async def suspend_service_account(self, id: str, body: EventReason | None = None) -> ServiceAccount:
        """Refuses the API tokens of the service account until it is resumed. Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has."""
        return cast('ServiceAccount', await self._send_json("POST", f"/service-accounts/{quote(id)}/suspend", body=body))

    async def list_service_account_tokens(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> APITokenPage:
        """Lists the API tokens of the service account, including those that expired in the last 30 days. Needs `service-accounts:read` in the whole tenant."""
        return cast('APITokenPage', await self._send_json("GET", f"/service-accounts/{quote(id)}/tokens", query={"limit": limit, "cursor": cursor}))

    def iter_service_account_tokens(self, id: str, *, limit: int | None = None) -> AsyncIterator[APIToken]:
        """Yields the items of all pages of list_service_account_tokens."""
        return self._iterate("GET", f"/service-accounts/{quote(id)}/tokens", query={"limit": limit})

    async def create_service_account_token(self, id: str, body: CreateAPIToken, *, idempotency_key: str | None = None) -> CreatedAPIToken:
        """Creates an API token that acts as the service account. The secret is returned only once. Needs `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedAPIToken', await self._send_json("POST", f"/service-accounts/{quote(id)}/tokens", body=body, key=idempotency_key or new_key()))

    async def revoke_service_account_token(self, id: str, token_id: str) -> None:
        """Revokes the API token. Links that were requested with it, such as invitations, become invalid. Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has."""
        await self._send_none("DELETE", f"/service-accounts/{quote(id)}/tokens/{quote(token_id)}")

    async def get_tenant(self) -> Tenant:
        """Returns the tenant of the request, with its settings. Needs `tenant:read` in the whole tenant."""
        return cast('Tenant', await self._send_json("GET", "/tenant"))

    async def update_tenant(self, body: UpdateTenant, *, if_match: str | None = None) -> Tenant:
        """Changes the display name and the settings that are in the body. Needs `tenant:update` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        return cast('Tenant', await self._send_json("PATCH", "/tenant", body=body, if_match=if_match))

    async def get_logo(self) -> bytes:
        """Returns the image as it was uploaded. Needs `tenant:read` in the whole tenant."""
        return await self._send_bytes("GET", "/tenant/logo")

    async def set_logo(self, body: bytes, content_type: Literal["image/jpeg", "image/png", "image/webp"], *, if_match: str | None = None) -> Logo:
        """Stores the image in the body, and replaces an earlier logo. The pages where users sign in, accept an invitation, or follow another mailed link show it to everyone. The image has a width and a height from 16 to 1024 pixels. It is stored unchanged, with its metadata. SVG is refused, because it can contain scripts. Needs `tenant:update` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        return cast('Logo', await self._send_json("PUT", "/tenant/logo", content=body, content_type=content_type, if_match=if_match))

    async def delete_logo(self, *, if_match: str | None = None) -> None:
        """Removes the logo. Browsers can keep a copy. Needs `tenant:update` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", "/tenant/logo", if_match=if_match)

    async def get_summary(self, *, time_zone: str | None = None) -> TenantSummary:
        """Returns what administrators look at first: open invitations, failed sign-ins and blocked sources, the coverage of second factors, roles and API tokens that expire within 14 days, and the number of events of each of the last 30 days. Parts that the caller may not read are absent. Needs in the whole tenant one of: `users:invite`; `users:reset-factors` and `users.status:read`; `events:read`; `roles:read`; `sessions:read`; `service-accounts:read`. The response has only the parts that the caller may read."""
        return cast('TenantSummary', await self._send_json("GET", "/tenant/summary", query={"timeZone": time_zone}))

    async def list_users(self, *, limit: int | None = None, cursor: str | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, count: bool | None = None, status: Literal["pending", "active", "suspended", "deleted"] | None = None, role: str | None = None, group: str | None = None, include: str | None = None) -> UserPage:
        """Lists the users that the caller may read. Needs `users:read`, or `users.<member>:read` for at least one member."""
        return cast('UserPage', await self._send_json("GET", "/users", query={"limit": limit, "cursor": cursor, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "count": count, "status": status, "role": role, "group": group, "include": include}))

    def iter_users(self, *, limit: int | None = None, sort: Literal["name", "-name", "email", "-email", "createdAt", "-createdAt"] | None = None, q: str | None = None, email: str | None = None, external_id: str | None = None, department: str | None = None, status: Literal["pending", "active", "suspended", "deleted"] | None = None, role: str | None = None, group: str | None = None, include: str | None = None) -> AsyncIterator[User]:
        """Yields the items of all pages of list_users."""
        return self._iterate("GET", "/users", query={"limit": limit, "sort": sort, "q": q, "email": email, "externalId": external_id, "department": department, "status": status, "role": role, "group": group, "include": include})

    async def create_user(self, body: CreateUser, *, idempotency_key: str | None = None) -> User:
        """Creates a user with the status pending. To let the user set a password and sign in, set invite, or invite the user later. Needs `users:create`. If `invite` is true, it also needs `users:invite`."""
        return cast('User', await self._send_json("POST", "/users", body=body, key=idempotency_key or new_key()))

    async def get_user(self, id: str) -> User:
        """Returns the user, with the members that the caller may read. Needs any of the `users` permissions except `users:restore`. Users need no permission to read themselves, even with an API token."""
        return cast('User', await self._send_json("GET", f"/users/{quote(id)}"))

    async def update_user(self, id: str, body: UpdateUser, *, if_match: str | None = None) -> User:
        """Changes the members that are in the body. To change the email address, use POST /users/{id}/email-changes. Only the identity provider can change the name and the department of a user of a directory. Needs `users:update`, or `users.<member>:update` for each member in the body. With a session, users need no permission to change their own name."""
        return cast('User', await self._send_json("PATCH", f"/users/{quote(id)}", body=body, if_match=if_match))

    async def delete_user(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the user, and ends the user's sessions and API tokens. The user can be restored for 30 days. Needs `users:delete`. The caller must have each of Rolecall's own permissions that the user has. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/users/{quote(id)}", if_match=if_match)

    async def request_email_change(self, id: str, body: EmailAddress, *, idempotency_key: str | None = None) -> EmailChange:
        """Mails a confirmation link to the new address, unless another user has it. The answer is the same in both cases. The current address is notified, and stays in use until the new one is confirmed. Needs `users.email:update`. Users with a session need no permission for their own account. For their own account, users need a session: an API token is refused. The user must not be suspended. For another user or with an API token, the caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        return cast('EmailChange', await self._send_json("POST", f"/users/{quote(id)}/email-changes", body=body, key=idempotency_key or new_key()))

    async def erase_user(self, id: str, body: EventReason | None = None) -> None:
        """Permanently removes the user and all personal data. It also works for a deleted user. Events about the user keep only their type and time, and the IDs of assigned roles. The event of the erasure keeps its reason, so the reason must have no personal data of the user. Needs `users:erase`. The caller must have each of Rolecall's own permissions that the user has. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("POST", f"/users/{quote(id)}/erase", body=body)

    async def list_user_events(self, id: str, *, limit: int | None = None, cursor: str | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None) -> EventPage:
        """Lists the events about the user, newest first. Needs `events:read` in the whole tenant. Users with a session need no permission for their own account."""
        return cast('EventPage', await self._send_json("GET", f"/users/{quote(id)}/events", query={"limit": limit, "cursor": cursor, "type": type, "actor": actor, "from": from_, "to": to}))

    def iter_user_events(self, id: str, *, limit: int | None = None, type: str | None = None, actor: str | None = None, from_: str | None = None, to: str | None = None) -> AsyncIterator[Event]:
        """Yields the items of all pages of list_user_events."""
        return self._iterate("GET", f"/users/{quote(id)}/events", query={"limit": limit, "type": type, "actor": actor, "from": from_, "to": to})

    async def reset_factors(self, id: str) -> None:
        """Removes all second factors of a user who has lost them, ends the user's sessions, and notifies the user. After that, the user signs in with the password alone, or enrolls a new factor if the tenant requires one. Needs `users:reset-factors`. For their own account, users need a session: an API token is refused. The caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/users/{quote(id)}/factors")

    async def list_user_groups(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> MembershipPage:
        """Lists the memberships of the user in groups. Needs `groups:read` in the whole tenant. Users with a session need no permission for their own account."""
        return cast('MembershipPage', await self._send_json("GET", f"/users/{quote(id)}/groups", query={"limit": limit, "cursor": cursor}))

    def iter_user_groups(self, id: str, *, limit: int | None = None) -> AsyncIterator[Membership]:
        """Yields the items of all pages of list_user_groups."""
        return self._iterate("GET", f"/users/{quote(id)}/groups", query={"limit": limit})

    async def list_identities(self, id: str) -> IdentityPage:
        """Lists the accounts at identity providers with which the user can sign in, the oldest first. A user can have 20. Needs `identities:read`. Users with a session need no permission for their own account."""
        return cast('IdentityPage', await self._send_json("GET", f"/users/{quote(id)}/identities"))

    async def delete_identity(self, id: str, identity_id: str) -> None:
        """The user cannot sign in with the identity any more, and the sessions that began with it end. Needs `identities:delete`. Users with a session need no permission for their own account. For their own account, users need a session: an API token is refused. For another user or with an API token, the caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/users/{quote(id)}/identities/{quote(identity_id)}")

    async def invite_user(self, id: str, body: LinkDelivery | None = None, *, idempotency_key: str | None = None) -> Invitation:
        """Mails the user a link to set a password and sign in. The link replaces an earlier invitation. With the delivery `return`, no mail is sent and the response has the link. This needs an operator key, or a service account with `users:issue-links`. Only an operator key gets the link of an owner. Needs `users:invite`. The user must not be suspended. The caller must be able to assign every role of the user."""
        return cast('Invitation', await self._send_json("POST", f"/users/{quote(id)}/invitations", body=body, key=idempotency_key or new_key()))

    async def withdraw_invitation(self, id: str) -> None:
        """Makes the link of the invitation invalid. The answer is the same for a user without an invitation. Needs `users:invite`. The caller must have each of Rolecall's own permissions that the user has."""
        await self._send_none("DELETE", f"/users/{quote(id)}/invitations")

    async def get_user_overview(self, id: str) -> Overview:
        """Returns a summary of the user: roles, permissions, sign-in state, sessions, API tokens, second factors and recent events. Parts that the caller may not read are absent. Needs any of the `users` permissions except `users:restore`. Users need no permission to read themselves, even with an API token."""
        return cast('Overview', await self._send_json("GET", f"/users/{quote(id)}/overview"))

    async def send_password_reset(self, id: str, body: LinkDelivery | None = None, *, idempotency_key: str | None = None) -> PasswordReset:
        """Mails the user a link to set a new password. The response does not have the link, except with the delivery `return`. Then no mail is sent. This needs an operator key, or a service account with `users:issue-links`. Only an operator key gets the link of an owner. Needs `users:invite`. The user must not be suspended. The caller must be able to assign every role of the user."""
        return cast('PasswordReset', await self._send_json("POST", f"/users/{quote(id)}/password-resets", body=body, key=idempotency_key or new_key()))

    async def restore_user(self, id: str) -> RestoredUser:
        """Restores a user who was deleted in the last 30 days. The restored user is pending, or suspended if the user was suspended before, and needs an invitation to sign in. The user gets back the roles that the caller may assign. Needs `users:restore`. With a session, needs a recent sign-in or re-authentication."""
        return cast('RestoredUser', await self._send_json("POST", f"/users/{quote(id)}/restore"))

    async def resume_user(self, id: str, body: EventReason | None = None) -> User:
        """Lets a suspended user sign in again, and lets the user's API tokens work again. A user without a password becomes pending. Needs `users:suspend`. The caller must have each of Rolecall's own permissions that the user has. The caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."""
        return cast('User', await self._send_json("POST", f"/users/{quote(id)}/resume", body=body))

    async def list_user_roles(self, id: str, *, limit: int | None = None, cursor: str | None = None, include_expired: bool | None = None, at: str | None = None) -> AssignmentPage:
        """Lists the user's role assignments that have not expired, with those through groups: one item for each way in which the user has a role. With includeExpired=true, expired ones are listed too. With at, the answer has the assignments of an earlier time. Needs `roles:read`. Users with a session need no permission for their own account."""
        return cast('AssignmentPage', await self._send_json("GET", f"/users/{quote(id)}/roles", query={"limit": limit, "cursor": cursor, "includeExpired": include_expired, "at": at}))

    def iter_user_roles(self, id: str, *, limit: int | None = None, include_expired: bool | None = None, at: str | None = None) -> AsyncIterator[Assignment]:
        """Yields the items of all pages of list_user_roles."""
        return self._iterate("GET", f"/users/{quote(id)}/roles", query={"limit": limit, "includeExpired": include_expired, "at": at})

    async def assign_role(self, id: str, role_id: str, body: AssignRole | None = None) -> Assignment:
        """Assigns the role for the whole tenant or for some departments, with or without an expiry. It replaces an existing assignment of the role to the user. Needs `roles:assign`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        return cast('Assignment', await self._send_json("PUT", f"/users/{quote(id)}/roles/{quote(role_id)}", body=body))

    async def unassign_role(self, id: str, role_id: str) -> None:
        """Removes the role from the user. If the user has the role only through a group, the answer is 404. Needs `roles:assign`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/users/{quote(id)}/roles/{quote(role_id)}")

    async def list_user_sessions(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> UserSessionPage:
        """Lists the live sessions of the user, newest first. Needs `sessions:read`. Users with a session need no permission for their own account."""
        return cast('UserSessionPage', await self._send_json("GET", f"/users/{quote(id)}/sessions", query={"limit": limit, "cursor": cursor}))

    def iter_user_sessions(self, id: str, *, limit: int | None = None) -> AsyncIterator[UserSession]:
        """Yields the items of all pages of list_user_sessions."""
        return self._iterate("GET", f"/users/{quote(id)}/sessions", query={"limit": limit})

    async def end_user_sessions(self, id: str) -> None:
        """Ends all sessions of the user. If the session of the request is one of them, its cookie is cleared. Links that were requested in these sessions, such as invitations of other users, become invalid. A change of the user's email address that is not confirmed becomes invalid too. Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."""
        await self._send_none("DELETE", f"/users/{quote(id)}/sessions")

    async def end_user_session(self, id: str, session_id: str) -> None:
        """Ends the session. If it is the session of the request, its cookie is cleared. Links that were requested in it, such as invitations of other users, become invalid. Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."""
        await self._send_none("DELETE", f"/users/{quote(id)}/sessions/{quote(session_id)}")

    async def suspend_user(self, id: str, body: EventReason | None = None) -> User:
        """Ends all sessions of the user. Until the user is resumed, sign-ins and the user's API tokens are refused. Needs `users:suspend`. The caller must have each of Rolecall's own permissions that the user has."""
        return cast('User', await self._send_json("POST", f"/users/{quote(id)}/suspend", body=body))

    async def list_user_tokens(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> APITokenPage:
        """Lists the API tokens that act as the user, including those that expired in the last 30 days. Needs `sessions:read`. Users with a session need no permission for their own account."""
        return cast('APITokenPage', await self._send_json("GET", f"/users/{quote(id)}/tokens", query={"limit": limit, "cursor": cursor}))

    def iter_user_tokens(self, id: str, *, limit: int | None = None) -> AsyncIterator[APIToken]:
        """Yields the items of all pages of list_user_tokens."""
        return self._iterate("GET", f"/users/{quote(id)}/tokens", query={"limit": limit})

    async def create_user_token(self, id: str, body: CreateAPIToken, *, idempotency_key: str | None = None) -> CreatedAPIToken:
        """Creates an API token that acts as the caller. The secret is returned only once. Needs no permission, but users can create tokens only for themselves. Needs a session: API tokens and operator keys are refused. Needs a recent sign-in or re-authentication."""
        return cast('CreatedAPIToken', await self._send_json("POST", f"/users/{quote(id)}/tokens", body=body, key=idempotency_key or new_key()))

    async def revoke_user_token(self, id: str, token_id: str) -> None:
        """Revokes the API token. Links that were requested with it, such as invitations, become invalid. Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."""
        await self._send_none("DELETE", f"/users/{quote(id)}/tokens/{quote(token_id)}")

    async def list_webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> WebhookPage:
        """Lists the webhooks of the tenant, the oldest first. Needs `webhooks:read` in the whole tenant."""
        return cast('WebhookPage', await self._send_json("GET", "/webhooks", query={"limit": limit, "cursor": cursor}))

    def iter_webhooks(self, *, limit: int | None = None) -> AsyncIterator[Webhook]:
        """Yields the items of all pages of list_webhooks."""
        return self._iterate("GET", "/webhooks", query={"limit": limit})

    async def create_webhook(self, body: CreateWebhook, *, idempotency_key: str | None = None) -> CreatedWebhook:
        """Creates a webhook, which sends the items of GET /changes to a URL. The first item is the event webhook.created about it. Each request has the headers of Standard Webhooks, with a signature. The secret is returned only once. A tenant can have 20 webhooks. Needs `webhooks:create` and `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedWebhook', await self._send_json("POST", "/webhooks", body=body, key=idempotency_key or new_key()))

    async def get_webhook(self, id: str) -> Webhook:
        """Returns the webhook, without its secret. Needs `webhooks:read` in the whole tenant."""
        return cast('Webhook', await self._send_json("GET", f"/webhooks/{quote(id)}"))

    async def update_webhook(self, id: str, body: UpdateWebhook, *, if_match: str | None = None) -> Webhook:
        """Changes the members that are in the body. Items that could not be delivered are sent again at once. A webhook that is enabled again continues with the first item that was not delivered. Needs `webhooks:update` and `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('Webhook', await self._send_json("PATCH", f"/webhooks/{quote(id)}", body=body, if_match=if_match))

    async def delete_webhook(self, id: str, *, if_match: str | None = None) -> None:
        """Deletes the webhook with its deliveries. Needs `webhooks:delete` in the whole tenant. With a session, needs a recent sign-in or re-authentication."""
        await self._send_none("DELETE", f"/webhooks/{quote(id)}", if_match=if_match)

    async def list_deliveries(self, id: str, *, limit: int | None = None, cursor: str | None = None, result: Literal["delivered", "failed"] | None = None) -> WebhookDeliveryPage:
        """Lists the attempts to send items, the newest first. The subject of an event decides to which of four parts its item belongs. Of each part, of its replays, and of the tests, the last 128 attempts are kept, without the content of requests and responses. Needs `webhooks:read` in the whole tenant."""
        return cast('WebhookDeliveryPage', await self._send_json("GET", f"/webhooks/{quote(id)}/deliveries", query={"limit": limit, "cursor": cursor, "result": result}))

    def iter_deliveries(self, id: str, *, limit: int | None = None, result: Literal["delivered", "failed"] | None = None) -> AsyncIterator[WebhookDelivery]:
        """Yields the items of all pages of list_deliveries."""
        return self._iterate("GET", f"/webhooks/{quote(id)}/deliveries", query={"limit": limit, "result": result})

    async def replay_webhook(self, id: str, body: Replay) -> None:
        """Sends the items of a time again, as far as their events are kept. The items have the same IDs as before, and the values that the service account may read now. New items are sent at the same time. A replay ends an earlier one. Needs `webhooks:update` in the whole tenant."""
        await self._send_none("POST", f"/webhooks/{quote(id)}/replay", body=body)

    async def rotate_secret(self, id: str, *, if_match: str | None = None) -> CreatedWebhook:
        """Gives the webhook a new secret, which is returned only once. For 24 hours, each request has two signatures: one with the new and one with the old secret. Needs `webhooks:update` and `service-accounts:update` in the whole tenant. API tokens are refused. The caller must be able to assign every role of the service account. With a session, needs a recent sign-in or re-authentication."""
        return cast('CreatedWebhook', await self._send_json("POST", f"/webhooks/{quote(id)}/rotate-secret", if_match=if_match))

    async def skip_items(self, id: str, body: SkipItems | None = None) -> None:
        """Continues after the items that fail: of each part of the webhook, the first item that could not be delivered is not sent again. With all, no item of an event until now is sent, and a replay ends. Needs `webhooks:update` in the whole tenant."""
        await self._send_none("POST", f"/webhooks/{quote(id)}/skip", body=body)

    async def test_webhook(self, id: str) -> WebhookTestItem:
        """Sends one item of the type webhook.test, also if the webhook is disabled. The result is in the list of deliveries. A failed test is not repeated. Needs `webhooks:update` in the whole tenant."""
        return cast('WebhookTestItem', await self._send_json("POST", f"/webhooks/{quote(id)}/test"))
