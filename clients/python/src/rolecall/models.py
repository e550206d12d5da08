# Generated from openapi/openapi.yaml by generate.py. Do not edit. SHA-256 of the document:
# 9937159653189126987a3cb70f2020e918f6de4043008f9b268720c73608bc9b
"""The objects of the API. At run time, they are dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class APIToken(TypedDict):
    """An API token without its secret."""

    createdAt: str
    """When the token was created."""

    createdBy: str | None
    """ID of the principal who created the token. Null for an operator."""

    expiresAt: str
    """When the token expires."""

    id: str
    """ID of the token."""

    lastUsedAt: str | None
    """When the token was used last, to the minute. Null for never."""

    name: str
    """Name of the token, for example its purpose."""

    permissions: list[str]
    """The permissions of the token. They are effective only while the user or service account of the token has them."""


class APITokenPage(TypedDict):
    """A page of API tokens."""

    items: list[APIToken]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class AcceptInvitation(TypedDict):
    """The token of the invitation, and the password to set."""

    deviceToken: NotRequired[str]
    """The deviceToken of an earlier sign-in of the user on this device. Sign-ins from known devices have separate limits, so that guesses from elsewhere do not lock the user out. Send it only with the transport bearer."""

    password: str
    """The new password. It must have at least passwordMinimum characters, and must not be easy to guess."""

    token: str
    """The token in the link."""

    transport: NotRequired[Literal["cookie", "bearer"]]
    """How the client gets the session. With cookie, the response sets cookies. With bearer, the response has the tokens in the body and sets no cookie. Mobile apps, and pages on another site, use bearer."""


class Accepted(TypedDict):
    """The effect of the request."""

    detail: str
    """What happens next, as a sentence for users."""


class Access(TypedDict):
    """A user or service account that has a permission, and the role assignments that give it."""

    grants: list[AccessGrant]
    """The role assignments that give the permission."""

    serviceAccount: ServiceAccount | None
    """The service account that has the permission. Null for a user."""

    user: User | None
    """The user who has the permission, with the members that the caller may read. Null for a service account."""


class AccessGrant(TypedDict):
    """A role assignment that gives a permission."""

    expiresAt: str | None
    """When the assignment expires. Null for never."""

    permissions: list[str]
    """The permissions of the role that cover the permission of the request. They can have wildcards."""

    reach: Reach | None
    """The reach of the assignment. Null for the whole tenant."""

    role: RoleName
    """The role."""

    through: Through | None
    """The group through which the user has the role. Null if the role is assigned directly."""


class AccessPage(TypedDict):
    """A page of users and service accounts that have a permission."""

    items: list[Access]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class AssignRole(TypedDict):
    """The reach and expiry of the assignment. Without a body, it applies to the whole tenant and does not expire."""

    expiresAt: NotRequired[str]
    """When the assignment expires, in the future. Omit it for never."""

    reach: NotRequired[Reach]
    """The reach of the assignment. Omit it for the whole tenant."""


class Assignment(TypedDict):
    """The assignment of a role to a user, service account or group, with its reach and expiry."""

    expiresAt: str | None
    """When the assignment expires. Null for never."""

    grantedAt: str
    """When the role was assigned."""

    grantedBy: str | None
    """ID of the principal who assigned the role. Null for an operator."""

    reach: Reach | None
    """The reach of the assignment. Null for the whole tenant."""

    role: RoleName
    """The role."""

    through: Through | None
    """The group through which the user has the role. Null if the role is assigned directly."""


class AssignmentPage(TypedDict):
    """A page of the assignments of a user, service account or group."""

    items: list[Assignment]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class AuthenticatorApp(TypedDict):
    """An authenticator app."""

    confirmedAt: str
    """When the app was enrolled."""


class BeginEnrolment(TypedDict):
    """The challenge of the sign-in."""

    challenge: str
    """The challenge in the 401 response to the sign-in."""


class BlockedSource(TypedDict):
    """A network whose sign-ins are refused after too many failures."""

    source: str
    """The IPv4 address, or the /64 network of the IPv6 address."""

    until: str
    """Until when sign-ins are refused."""


class BoundedCount(TypedDict):
    """A number of things, counted up to a limit."""

    count: int
    """The number that was counted."""

    isExact: bool
    """Whether count is exact. Otherwise there are more."""


class Change(TypedDict):
    """An event as a CloudEvent 1.0. The page on events describes each type."""

    data: ChangeData
    """The change."""

    datacontenttype: str
    """application/json, the format of data."""

    id: str
    """ID of the event, as in GET /events."""

    source: str
    """The public URL of the service, and the tenant. Together with id, it identifies the event everywhere."""

    specversion: str
    """1.0, the version of CloudEvents."""

    subject: str
    """Kind of subject and its ID, such as user/019d83e6-1ef1-7004-a1b2-3c4d5e6f7a44."""

    time: str
    """When it happened. Times can be out of order."""

    type: str
    """Type of the event, as in GET /events. Later versions may add values."""


class ChangeActor(TypedDict):
    """Who caused a change."""

    id: str | None
    """ID of the principal. Null for commands and for anonymous callers."""

    tokenId: str | None
    """ID of the API token of the request."""

    type: str
    """Kind of principal: user, service_account, operator, anonymous or directory. Later versions may add values."""

    via: str
    """How the request came in: http, token, command, mail or scim. Later versions may add values."""


class ChangeData(TypedDict):
    """The content of a change."""

    actor: ChangeActor
    """Who caused the event."""

    after: NotRequired[dict[str, Any]]
    """The changed members after the change, as in GET /events."""

    before: NotRequired[dict[str, Any]]
    """The changed members before the change, as in GET /events."""

    expiresAt: str | None
    """When the assigned role expires. No event follows when it expires. It is null if it does not expire, in other events, and if the caller may not read assignments."""

    members: list[str]
    """Names of the members that changed."""

    reason: str | None
    """The reason for the change or for the refusal."""

    requestId: str | None
    """ID of the request."""

    subject: EventSubject
    """What the event is about."""

    tenant: str
    """Name of the tenant."""


class ChangeEmail(TypedDict):
    """The token in the link."""

    token: str
    """The token in the link."""


class ChangePassword(TypedDict):
    """The current password and the new one."""

    currentPassword: str
    """The current password."""

    newPassword: str
    """The new password. It must have at least passwordMinimum characters, and must not be easy to guess."""


class Changes(TypedDict):
    """A part of the change feed."""

    items: list[Change]
    """The changes, the oldest first."""

    nextCursor: str
    """The cursor after these changes. It is never null. Use it as after in the next request."""

    upToDate: bool
    """Whether there were no further changes."""


class CheckPermissions(TypedDict):
    """The permissions to check."""

    checks: list[PermissionCheck]
    """The permissions to check. Empty for no results."""


class CheckResult(TypedDict):
    """The result of one check."""

    allowed: bool
    """Whether the caller has the permission: for the department, or in the whole tenant for a check without a department."""

    department: str | None
    """The department of the check."""

    permission: SinglePermission
    """The permission that was checked."""


class CheckedPermissions(TypedDict):
    """The results of the checks, in the order of the checks in the request."""

    results: list[CheckResult]
    """One result for each check."""


class Checkpoint(TypedDict):
    """The signed state of the audit log of the tenant."""

    builtAt: str
    """When the last event was added to the log."""

    note: str
    """The checkpoint as a signed note in the form of C2SP tlog-checkpoint. Save it to a file for rolecall events verify."""

    root: str
    """Hash of the whole log in base64."""

    size: int
    """Number of events in the log, including those that were deleted because of their age."""

    verifierKey: str
    """The public key that verifies the signature of the note, in the form of golang.org/x/mod/sumdb/note. It stays the same, so save it once."""


class CompleteLogin(TypedDict):
    """The challenge, and exactly one of code, recoveryCode and passkey."""

    challenge: str
    """The challenge in the 401 response to the sign-in."""

    code: NotRequired[str]
    """Six digits from the authenticator app."""

    deviceToken: NotRequired[str]
    """The deviceToken of an earlier sign-in of the user on this device. Sign-ins from known devices have separate limits, so that guesses from elsewhere do not lock the user out. Send it only with the transport bearer."""

    passkey: NotRequired[dict[str, Any]]
    """The result of toJSON() of the credential that the browser returned."""

    recoveryCode: NotRequired[str]
    """An unused recovery code."""


class Confirm(TypedDict):
    """The password, or the code of a sign-in with an identity provider. Users with a second factor also send one of code, recoveryCode and passkey."""

    code: NotRequired[str]
    """Six digits from the authenticator app."""

    codeVerifier: NotRequired[str]
    """The text of codeChallenge. Required if that sign-in began with a codeChallenge."""

    connectionCode: NotRequired[str]
    """The code that returnTo got after POST /auths/oidc/start with the purpose confirm. It replaces the password."""

    passkey: NotRequired[dict[str, Any]]
    """The result of toJSON() of the credential that the browser returned."""

    password: NotRequired[str]
    """Password of the user. Required without connectionCode."""

    recoveryCode: NotRequired[str]
    """An unused recovery code."""


class ConfirmTotp(TypedDict):
    """A code of the authenticator app."""

    code: str
    """Six digits from the authenticator app."""


class ConfirmedSession(TypedDict):
    """A session after a re-authentication."""

    authenticatedAt: str
    """When the user signed in. Re-authentication does not change it."""

    confirmedAt: str | None
    """When the user last re-authenticated. Null for never."""

    expiresAt: str
    """When the session expires even if it is used (maximum session length)."""

    id: str
    """ID of the session."""

    idleExpiresAt: str
    """When the session expires if it is not used (idle timeout)."""

    secondFactor: bool
    """Whether the user signed in with a second factor."""

    token: NotRequired[str]
    """The new token of the session. Only if the request has the token in the Authorization header."""

    tokenExpiresAt: NotRequired[str]
    """When the token of the request expires. Only in GET /auths/session, and only after a newer token of the session was used. A later use of the old token ends the session, so keep the response no longer than this."""


class Connection(TypedDict):
    """A connection to an identity provider, without its client secret."""

    acrValues: NotRequired[list[str]]
    """Values of the claim acr that prove a second factor."""

    amrValues: NotRequired[list[str]]
    """Values of the claim amr that prove a second factor."""

    clientId: NotRequired[str]
    """ID of the client that the identity provider has for Rolecall."""

    createdAt: NotRequired[str]
    """When the connection was created."""

    domains: NotRequired[list[str]]
    """Domains of email addresses, in lower case. POST /auths/connections/find returns this connection for their addresses. If there are any, users are linked by address or created only for addresses of these domains."""

    groups: NotRequired[ConnectionGroups | None]
    """Fills groups by a claim of the identity provider, at each sign-in. Null: no claim is read."""

    id: str
    """ID of the connection."""

    issuer: NotRequired[str]
    """Issuer of the identity provider: the exact value of iss in its ID tokens."""

    linking: NotRequired[Literal["invited", "verified-email"]]
    """Which users a new identity is linked to. invited: the user of an invitation, or the user who is signed in. verified-email: also the user with the same address, if the identity provider has verified it and the user is not an owner."""

    name: NotRequired[str]
    """Name of the connection. Callers who are not signed in can read it."""

    provisioning: NotRequired[Provisioning | None]
    """Creates a user at the first sign-in with an unknown identity, with this access. Null: no users are created."""

    secondFactor: NotRequired[Literal["require", "trust"]]
    """require: the rules of the tenant for second factors apply. trust: a sign-in counts as one with a second factor if the ID token has one of acrValues or amrValues."""

    updatedAt: NotRequired[str]
    """When the connection was changed last."""


class ConnectionGroups(TypedDict):
    """How a claim of the identity provider fills the groups whose source is the connection."""

    claim: str
    """Name of the claim with the groups of the person, such as groups. It is read from the ID token, or else from the userinfo endpoint. Must contain a visible character."""

    create: NotRequired[bool]
    """Whether groups that do not exist are created without roles. Otherwise, their values are ignored. The default is false."""

    matchBy: NotRequired[Literal["name", "externalId"]]
    """Whether the values of the claim are names or external IDs of groups. The default is name."""

    scopes: NotRequired[list[str] | None]
    """Scopes to request in addition to openid, email and profile, such as groups. Null or empty for none."""


class ConnectionPage(TypedDict):
    """The connections of a tenant."""

    items: list[Connection]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class ConnectionReport(TypedDict):
    """The result of a test of a connection."""

    algorithms: list[str]
    """The algorithms of ID tokens that both sides accept."""

    authorizationEndpoint: str | None
    """Where users sign in at the identity provider. Null if it is unknown."""

    endSessionEndpoint: str | None
    """Where users sign out at the identity provider. Null if it does not support this."""

    keys: int
    """The number of keys of the identity provider that Rolecall can use."""

    keysEndpoint: str | None
    """Where Rolecall gets the keys of the identity provider. Null if it is unknown."""

    passed: bool
    """Whether no problem was found."""

    problems: list[str]
    """The problems, as sentences in English."""

    tokenEndpoint: str | None
    """Where Rolecall gets the ID token. Null if it is unknown."""


ConsistencyProof = TypedDict("ConsistencyProof", {
    "checkpoint": "Checkpoint",  # The current checkpoint.
    "from": "int",  # The size of the earlier checkpoint.
    "hashes": "list[str]",  # The consistency proof of RFC 6962 in base64, from the root of the earlier checkpoint to the root of this one.
})
"""The proof that the audit log begins with the events of an earlier checkpoint."""


class CreateAPIToken(TypedDict):
    """A new API token."""

    expiresAt: str
    """When the token expires: in the future, and at most 366 days from now."""

    name: str
    """Name of the token, for example its purpose. Must contain a visible character."""

    permissions: list[Permission]
    """The permissions of the token. The user or service account of the token must have each permission or be able to assign it. If the user or service account loses a permission later, the token loses it too."""


class CreateConnection(TypedDict):
    """A new connection to an identity provider."""

    acrValues: NotRequired[list[str] | None]
    """Values of the claim acr that prove a second factor. Null or empty for none."""

    amrValues: NotRequired[list[str] | None]
    """Values of the claim amr that prove a second factor. Null or empty for none."""

    clientId: str
    """ID of the client that the identity provider has for Rolecall."""

    clientSecret: str
    """Secret of the client. Responses and events never contain it."""

    domains: NotRequired[list[str]]
    """Domains of email addresses, such as acme.example. POST /auths/connections/find returns this connection for their addresses. If there are any, users are linked by address or created only for addresses of these domains. A domain can be in one connection of the tenant."""

    groups: NotRequired[ConnectionGroups | None]
    """Fills groups by a claim of the identity provider, at each sign-in. Null, the default: no claim is read."""

    issuer: str
    """Issuer of the identity provider, exactly as in its discovery document. It begins with https:// and has no query or fragment. It cannot be changed later."""

    linking: NotRequired[Literal["invited", "verified-email"]]
    """Which users a new identity is linked to. The default is invited."""

    name: str
    """Name of the connection, such as Acme SSO. Callers who are not signed in can read it. Must contain a visible character."""

    provisioning: NotRequired[Provisioning | None]
    """Creates a user at the first sign-in with an unknown identity, with this access. Null, the default: no users are created."""

    secondFactor: NotRequired[Literal["require", "trust"]]
    """Whether a sign-in can count as one with a second factor. The default is require. trust needs acrValues or amrValues."""


class CreateDirectory(TypedDict):
    """A new directory. It has no users and no tokens at first."""

    deprovisioning: NotRequired[Literal["suspend", "delete"]]
    """What happens to a user that the directory deletes. The default is suspend."""

    matching: NotRequired[Literal["refuse", "email"]]
    """What happens when the directory creates a user whose address another user has. The default is refuse."""

    name: str
    """Name of the directory, such as Acme Entra. Must contain a visible character."""


class CreateDirectoryToken(TypedDict):
    """A new token of a directory."""

    expiresAt: str
    """When the token expires: in the future, and at most 366 days from now."""

    name: str
    """Name of the token, for example where it is used. Must contain a visible character."""


class CreateGroup(TypedDict):
    """A new group. It has no members and no roles at first."""

    description: NotRequired[str | None]
    """Description of the group. Must be empty or contain a visible character."""

    externalId: NotRequired[str | None]
    """ID of the group in another system, unique in the tenant. With a source, it is unique among the groups of the source. Null for none. Must contain a visible character."""

    name: str
    """Name of the group, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""

    source: NotRequired[MemberSource | None]
    """The directory or the connection that fills the group. It needs the permissions to configure connections. Null for none."""


class CreateOperatorWebhook(TypedDict):
    """A new webhook of operators."""

    enabled: NotRequired[bool]
    """Whether to send items. The default is true."""

    ignoreActors: NotRequired[list[str]]
    """Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."""

    types: NotRequired[list[str]]
    """The types of events to send, such as user.updated, or only * for all types, the default. /docs/events lists all types."""

    url: str
    """Where to send the items. It must begin with https:// and have a host on the internet, or in a network of --operator-webhook-networks."""


class CreatePasskey(TypedDict):
    """The response of the authenticator, and a name for the passkey."""

    name: str
    """Name of the passkey, for its owner. Must contain a visible character."""

    passkey: dict[str, Any]
    """The result of toJSON() of the credential that the browser returned."""


class CreateRole(TypedDict):
    """A new role."""

    description: NotRequired[str | None]
    """Description of the role. Must be empty or contain a visible character."""

    grants: NotRequired[list[Permission] | None]
    """Permissions that users with the role may assign to others without having them. Null or empty for none."""

    key: NotRequired[str | None]
    """Stable name of the role for programs. It never changes. Null for none."""

    name: str
    """Name of the role, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""

    permissions: NotRequired[list[Permission] | None]
    """The permissions of the role. Each has the form [application/]resource[.field]:action. Each part is a name or *. Null or empty for none."""


class CreateServiceAccount(TypedDict):
    """A new service account. It has no roles at first."""

    description: NotRequired[str | None]
    """Description of the service account. Must be empty or contain a visible character."""

    name: str
    """Name of the service account, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""


class CreateTenant(TypedDict):
    """A new tenant and its first owner, who is invited."""

    delivery: NotRequired[Literal["mail", "return"]]
    """How the link reaches the user. With mail, Rolecall mails it. With return, the response has it once, and no mail is sent."""

    displayName: NotRequired[str | None]
    """Display name of the tenant. Without it, the name is used. Null is the same as its absence. Must contain a visible character."""

    name: str
    """Name of the tenant. Requests send it in the header x-tenant-schema. It never changes."""

    owner: TenantOwner
    """The first owner, who is invited."""


class CreateUser(TypedDict):
    """A new user."""

    department: NotRequired[str | None]
    """Department of the user. It must have at least nameMinimum characters, a setting of the tenant. The reach of a role can be limited to departments. Null for no department. Must contain a visible character."""

    email: str
    """Email address, unique in the tenant."""

    externalId: NotRequired[str | None]
    """ID of the user in your application, unique in the tenant. Null for none. Must contain a visible character."""

    invite: NotRequired[bool]
    """Whether to mail an invitation to the user. It also needs the permission users:invite."""

    metadata: NotRequired[dict[str, str] | None]
    """Key-value pairs that the application stores with the user, at most 50. Null for none."""

    name: str
    """Full name. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""


class CreateWebhook(TypedDict):
    """A new webhook."""

    enabled: NotRequired[bool]
    """Whether to send items. The default is true."""

    ignoreActors: NotRequired[list[str]]
    """Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."""

    serviceAccountId: str
    """ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."""

    types: NotRequired[list[str]]
    """The types of events to send, such as user.updated, or only * for all types, the default. /docs/events lists all types."""

    url: str
    """Where to send the items. It must begin with https:// and have a host on the internet."""


class CreatedAPIToken(TypedDict):
    """A new API token. Its secret is returned only once: the answer to a repeated request has secretWithheld instead."""

    createdAt: str
    """When the token was created."""

    createdBy: str | None
    """ID of the principal who created the token. Null for an operator."""

    expiresAt: str
    """When the token expires."""

    id: str
    """ID of the token."""

    lastUsedAt: str | None
    """When the token was used last, to the minute. Null for never."""

    name: str
    """Name of the token, for example its purpose."""

    permissions: list[str]
    """The permissions of the token. They are effective only while the user or service account of the token has them."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."""

    token: NotRequired[str]
    """The secret, to send as Authorization: Bearer rc_…."""


class CreatedDirectoryToken(TypedDict):
    """A new token of a directory. Its secret is returned only once: the answer to a repeated request has secretWithheld instead."""

    createdAt: str
    """When the token was created."""

    createdBy: str | None
    """ID of the user who created the token. Null for an operator."""

    directoryId: str
    """ID of the directory."""

    expiresAt: str
    """When the token expires. The owners of the tenant get a mail 30 days before."""

    id: str
    """ID of the token."""

    lastUsedAt: str | None
    """When the token was used last, to within about a minute. Null if it was never used."""

    name: str
    """Name of the token."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."""

    token: NotRequired[str]
    """The secret, which the identity provider sends as Authorization: Bearer rd_…."""


class CreatedOperatorWebhook(TypedDict):
    """A webhook of operators with its secret. The secret is returned only once: the answer to a repeated request has secretWithheld instead."""

    createdAt: str
    """When the webhook was created."""

    disabledReason: str | None
    """Why Rolecall disabled the webhook: status-410 (the answer of the endpoint) or failing (an item has failed for three days). Null otherwise. Later versions may add values."""

    enabled: bool
    """Whether items are sent."""

    id: str
    """ID of the webhook."""

    ignoreActors: list[str]
    """Events that these users, service accounts or operator keys caused are not sent."""

    secret: NotRequired[str]
    """The secret that signs the requests, in the form whsec_ and Base64."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."""

    types: list[str]
    """The types of events that are sent, or only * for all types."""

    updatedAt: str
    """When the webhook was changed last."""

    url: str
    """Where the items are sent. It begins with https://."""


class CreatedPasskey(TypedDict):
    """A new passkey. Recovery codes are returned only once: the answer to a repeated request has secretWithheld instead."""

    createdAt: str
    """When the passkey was created."""

    id: str
    """ID of the passkey."""

    lastUsedAt: str | None
    """When the passkey was used last. Null for never."""

    name: str
    """Name of the passkey, for its owner."""

    recoveryCodes: NotRequired[list[str]]
    """Ten recovery codes. Each works once. Absent if the user had unused recovery codes. They are not returned again."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the recovery codes are therefore not shown again. Absent otherwise."""


class CreatedRecoveryCodes(TypedDict):
    """Recovery codes. After the confirmation of an authenticator app, they are absent if the user has unused ones."""

    recoveryCodes: NotRequired[list[str]]
    """Ten recovery codes. Each works once. They are not returned again."""


class CreatedWebhook(TypedDict):
    """A webhook with its secret. The secret is returned only once: the answer to a repeated request has secretWithheld instead. Callers without webhooks:read get the ID and the secret only."""

    createdAt: NotRequired[str]
    """When the webhook was created."""

    disabledReason: NotRequired[str | None]
    """Why Rolecall disabled the webhook: status-410 (the answer of the endpoint), failing (an item has failed for three days) or service-account-deleted. Null otherwise. Later versions may add values."""

    enabled: NotRequired[bool]
    """Whether items are sent."""

    id: str
    """ID of the webhook."""

    ignoreActors: NotRequired[list[str]]
    """Events that these users, service accounts or operator keys caused are not sent."""

    secret: NotRequired[str]
    """The secret that signs the requests, in the form whsec_ and Base64."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the secret is therefore not shown again. Absent otherwise."""

    serviceAccountId: NotRequired[str]
    """ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."""

    types: NotRequired[list[str]]
    """The types of events that are sent, or only * for all types."""

    updatedAt: NotRequired[str]
    """When the webhook was changed last."""

    url: NotRequired[str]
    """Where the items are sent. It begins with https://."""


class CurrentPrincipal(TypedDict):
    """The caller."""

    id: str
    """ID of the principal."""

    name: str
    """Name of the principal."""

    type: str
    """Kind of principal: user, service_account or operator. Later versions may add values."""


class CurrentSession(TypedDict):
    """The caller, with roles and permissions."""

    groups: list[GroupName]
    """The groups of the user. Decide by permissions, and not by groups."""

    permissions: list[str]
    """The permissions of the caller in the whole tenant. They can have wildcards: users:* covers users:read, and the permissions of an owner cover everything. To check a permission, use GET /auths/check or POST /auths/checks."""

    permissionsExpireAt: str | None
    """When the first role of the caller or the API token expires. Then the permissions change without an event. Null for never."""

    principal: CurrentPrincipal
    """The caller. An API token of a user acts as that user."""

    roles: list[RoleName]
    """The roles of the caller."""

    scopedPermissions: list[ScopedPermissions]
    """The permissions of the caller that are limited to some departments, with one entry per reach. A permission can be in several entries, and then applies in the departments of all of them."""

    session: Session | None
    """The session. Null without a session, as for an API token."""

    tenant: CurrentTenant
    """The tenant of the request."""

    user: User
    """The user. A service account and an operator have an ID and a name only."""


class CurrentTenant(TypedDict):
    """The tenant of the request."""

    id: str
    """ID of the tenant."""

    name: str
    """Name of the tenant."""


class DayActivity(TypedDict):
    """The number of events of a day."""

    date: str
    """The day, such as 2026-11-24."""

    events: int
    """Number of events. At most 1,000 are counted."""

    isExact: bool
    """Whether events is exact. Otherwise there are more."""


class Directory(TypedDict):
    """A directory, through which an identity provider manages users and groups."""

    createdAt: NotRequired[str]
    """When the directory was created."""

    deprovisioning: NotRequired[Literal["suspend", "delete"]]
    """What happens to a user that the directory deletes. suspend: the user is suspended, and keeps roles and groups. delete: the user is deleted, and can be restored for 30 days."""

    id: str
    """ID of the directory."""

    matching: NotRequired[Literal["refuse", "email"]]
    """What happens when the directory creates a user whose address another user has. refuse: the request fails. email: the directory takes over the user, who must have no directory and must not be an owner."""

    name: NotRequired[str]
    """Name of the directory."""

    paused: NotRequired[bool]
    """Whether the requests of the directory are refused with 503, so that nothing changes until the directory is resumed."""

    updatedAt: NotRequired[str]
    """When the directory was changed last."""


class DirectoryPage(TypedDict):
    """The directories of a tenant."""

    items: list[Directory]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class DirectoryRequest(TypedDict):
    """A request that an identity provider has sent."""

    at: str
    """When the request was received."""

    detail: str
    """Why the request was refused. Empty if it succeeded."""

    method: str
    """Method of the request."""

    path: str
    """Path of the request after the base URL, without its query."""

    status: int
    """Status of the response."""


class DirectoryRequestPage(TypedDict):
    """The last requests of a directory."""

    items: list[DirectoryRequest]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class DirectoryToken(TypedDict):
    """A token of a directory, without its secret."""

    createdAt: str
    """When the token was created."""

    createdBy: str | None
    """ID of the user who created the token. Null for an operator."""

    directoryId: str
    """ID of the directory."""

    expiresAt: str
    """When the token expires. The owners of the tenant get a mail 30 days before."""

    id: str
    """ID of the token."""

    lastUsedAt: str | None
    """When the token was used last, to within about a minute. Null if it was never used."""

    name: str
    """Name of the token."""


class DirectoryTokenPage(TypedDict):
    """The tokens of a directory."""

    items: list[DirectoryToken]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class EmailAddress(TypedDict):
    """An email address."""

    email: str
    """Email address."""


class EmailChange(TypedDict):
    """The mail with a link to confirm a new address."""

    expiresAt: NotRequired[str]
    """When the link expires."""

    userId: str
    """ID of the user."""


class Enrolment(TypedDict):
    """Two ways to enroll a second factor: with a code of the secret, or with a passkey."""

    publicKey: NotRequired[dict[str, Any]]
    """Options for navigator.credentials.create. Absent if passkeys are not available."""

    secret: str
    """The secret in base32, to type into the app."""

    uri: str
    """The secret as an otpauth:// URI, to show as a QR code."""


class Event(TypedDict):
    """An event. To copy all events, poll with an overlap and skip the IDs that you have, as the guide on events shows."""

    actor: EventActor
    """Who caused the event."""

    after: NotRequired[dict[str, Any]]
    """The changed members after the change, as in before."""

    before: NotRequired[dict[str, Any]]
    """The changed members before the change. Members that the caller may not read are absent. For an assignment: roleId, departments (absent for the whole tenant) and expiresAt (absent if it does not expire)."""

    id: str
    """ID of the event. IDs are not in the order of commits."""

    members: list[str]
    """Names of the members that changed."""

    occurredAt: str
    """When it happened."""

    reason: str | None
    """The reason for the change or for the refusal."""

    requestId: str | None
    """ID of the request."""

    sessionId: str | None
    """ID of the session of the request. In the event session.ended, ID of the session that ended. In other events, it is also null if another user, service account or operator caused the event, unless the caller may read all events."""

    source: str | None
    """IP address of the client. It is also null if another user, service account or operator caused the event, unless the caller may read all events."""

    subject: EventSubject
    """What the event is about."""

    type: str
    """Type of the event: one of the values of the query parameter type. Later versions may add values. /docs/events describes each type."""


class EventActor(TypedDict):
    """Who caused an event."""

    id: str | None
    """ID of the principal. Null for commands and for anonymous callers."""

    tokenId: str | None
    """ID of the API token of the request. It is also null if another user, service account or operator caused the event, unless the caller may read all events."""

    type: str
    """Kind of principal: user, service_account, operator, anonymous or directory. Later versions may add values."""

    via: str
    """How the request came in: http, token, command, mail or scim. Later versions may add values."""


class EventPage(TypedDict):
    """A page of events."""

    items: list[Event]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class EventProof(TypedDict):
    """The proof that an event is in the audit log."""

    checkpoint: Checkpoint
    """The checkpoint of the log that has the event."""

    hashes: list[str]
    """The inclusion proof of RFC 6962 in base64: with the hash of the leaf, these hashes give the root of the checkpoint."""

    id: str
    """ID of the event."""

    index: int
    """Index of the leaf in the log. The oldest event ever has the index 0."""

    leaf: str
    """The leaf: the event as a JSON object, with commitments instead of values, reason and source. The hash of the leaf is the SHA-256 of a zero byte and this text."""

    reason: OpenedCommitment | None
    """The reason. Null if it was erased."""

    source: OpenedCommitment | None
    """The IP address of the client. Null if it was erased."""

    values: OpenedCommitment | None
    """The values before and after the change, as a JSON object in a text. Null if they were erased, or if the caller may not read all of them."""


class EventReason(TypedDict):
    """The reason to record with the event."""

    reason: NotRequired[str | None]
    """The reason for the operation. It is recorded in the event. Must be empty or contain a visible character."""


class EventSubject(TypedDict):
    """The user, role or other object that an event is about."""

    id: str
    """ID of the subject."""

    type: str
    """Kind of subject, such as user, role or tenant. Later versions may add values."""


class ExchangeCode(TypedDict):
    """The code of the sign-in, and its verifier."""

    code: str
    """The code that returnTo got."""

    codeVerifier: str
    """The text of codeChallenge."""

    deviceToken: NotRequired[str]
    """The deviceToken of an earlier sign-in of the user on this device. Sign-ins from known devices have separate limits, so that guesses from elsewhere do not lock the user out. Send it only with the transport bearer."""

    transport: NotRequired[Literal["cookie", "bearer"]]
    """How the client gets the session. With cookie, the response sets cookies. With bearer, the response has the tokens in the body and sets no cookie. Mobile apps, and pages on another site, use bearer."""


class ExpiringRole(TypedDict):
    """A role assignment that expires soon."""

    expiresAt: str
    """When the assignment expires."""

    roleId: str
    """ID of the role."""

    roleName: str
    """Name of the role."""

    serviceAccountId: str | None
    """ID of the service account with the role. Null for a user."""

    userId: str | None
    """ID of the user with the role. Null for a service account."""


class ExpiringRoles(TypedDict):
    """Role assignments that expire soon."""

    hasMore: bool
    """Whether more assignments expire within 14 days."""

    items: list[ExpiringRole]
    """The first 10 assignments to expire."""


class ExpiringToken(TypedDict):
    """An API token that expires soon."""

    expiresAt: str
    """When the token expires."""

    id: str
    """ID of the API token."""

    name: str
    """Name of the API token."""

    serviceAccountId: str | None
    """ID of the service account of the token. Null for a user."""

    userId: str | None
    """ID of the user of the token. Null for a service account."""


class ExpiringTokens(TypedDict):
    """API tokens that expire soon."""

    hasMore: bool
    """Whether more tokens expire within 14 days."""

    items: list[ExpiringToken]
    """The first 10 tokens to expire."""


class FactorCoverage(TypedDict):
    """How many active users have a second factor."""

    isExact: bool
    """Whether all users were counted. Otherwise the numbers are of the first 5,000 users."""

    protected: int
    """Active users with an authenticator app or a passkey."""

    users: int
    """Active users."""


class FactorSummary(TypedDict):
    """The second factors of a user."""

    passkeys: int
    """Number of passkeys."""

    recoveryCodesLeft: int
    """Number of unused recovery codes."""

    totp: bool
    """Whether the user has an authenticator app."""


class Factors(TypedDict):
    """The caller's second factors."""

    demanded: bool
    """Whether the tenant requires a second factor of the caller."""

    passkeys: list[Passkey]
    """The passkeys."""

    recoveryCodes: int
    """Number of unused recovery codes."""

    totp: AuthenticatorApp | None
    """The authenticator app. Null if none is enrolled."""


class FailedSignIns(TypedDict):
    """The failed sign-ins of the last 24 hours."""

    blockedSources: list[BlockedSource]
    """Networks whose sign-ins from unknown browsers are refused now, after too many failed ones. The networks of the newest failed sign-ins are checked, at most 20."""

    count: int
    """The number that was counted."""

    isExact: bool
    """Whether count is exact. Otherwise there are more."""


class Fault(TypedDict):
    """One field error of a request. Exactly one of pointer, header and parameter is present, and names the field."""

    code: str
    """Stable code of the field error, for programs."""

    detail: str
    """Explanation of the field error for people."""

    header: NotRequired[str]
    """Name of the header."""

    parameter: NotRequired[str]
    """Name of the parameter."""

    pointer: NotRequired[str]
    """JSON Pointer (RFC 6901) into the body."""


class FindConnection(TypedDict):
    """An email address."""

    email: str
    """An email address. Only its domain counts."""


class FoundConnection(TypedDict):
    """The connection of an email address."""

    connection: OfferedConnection | None
    """The connection that has the domain of the address. Null if no connection has it."""


class FoundedTenant(TypedDict):
    """A new tenant with its first owner and the invitation. The token and the link are returned only once: the answer to a repeated request has secretWithheld instead. If the owner was erased since then, owner has only the ID."""

    invitation: OwnerInvitation
    """The invitation of the owner."""

    owner: User
    """The first owner."""

    tenant: Tenant
    """The new tenant."""


class Grant(TypedDict):
    """A permission of a user, with its reach and the roles that give it."""

    permission: str
    """The permission. It can have wildcards."""

    reach: Reach | None
    """The reach of the permission. Null for the whole tenant."""

    roles: list[RoleName]
    """The roles that give the permission to the user."""


class Group(TypedDict):
    """A set of users. The roles of the group apply to each of them. Callers without groups:read get the ID only."""

    createdAt: NotRequired[str]
    """When the group was created."""

    description: NotRequired[str]
    """Description of the group."""

    externalId: NotRequired[str | None]
    """ID of the group in another system. Null without one."""

    id: str
    """ID of the group."""

    name: NotRequired[str]
    """Name of the group."""

    source: NotRequired[MemberSource | None]
    """The directory or the connection that fills the group. Its name and members can only be changed there. Null without one."""

    updatedAt: NotRequired[str]
    """When the name, the description or the external ID was changed last."""


class GroupName(TypedDict):
    """The name of a group."""

    id: str
    """ID of the group."""

    name: str
    """Name of the group."""


class GroupPage(TypedDict):
    """A page of groups."""

    items: list[Group]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""

    total: NotRequired[int]
    """Number of items on all pages, with the filters of the request. Only with count=true."""

    totalIsExact: NotRequired[bool]
    """Whether total is exact. It is exact up to 10,000."""


class Identity(TypedDict):
    """An account at an identity provider with which the user can sign in."""

    connectionId: str
    """ID of the connection."""

    createdAt: str
    """When the identity was linked to the user."""

    email: str
    """Email address that the identity provider sent at the last sign-in. After the identity is linked, it has no effect. Empty if it sent no address."""

    id: str
    """ID of the identity."""

    issuer: str
    """Issuer of the identity provider."""

    lastUsedAt: str | None
    """When the user last signed in with the identity. The sign-in that linked the identity does not count. Null if never."""

    subject: str
    """ID of the person at the identity provider: the claim sub."""

    userId: str
    """ID of the user who can sign in with the identity."""


class IdentityPage(TypedDict):
    """The identities of a user."""

    items: list[Identity]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class IncludedFactors(TypedDict):
    """The second factors of a user in a list."""

    passkeys: int
    """Number of passkeys. At most 100 are counted."""

    totp: bool
    """Whether the user has an authenticator app."""


class Invitation(TypedDict):
    """An invitation to set a password and sign in. Only the mail to the user has the link."""

    createdAt: NotRequired[str]
    """When the invitation was created."""

    expiresAt: NotRequired[str]
    """When the invitation expires."""

    link: NotRequired[str]
    """The link that the user opens to set a password. Only with the delivery return."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the token and the link are therefore not shown again. To replace a lost link, send the request with a new idempotency key. Absent otherwise."""

    token: NotRequired[str]
    """The token in the link. Only with the delivery return."""

    userId: str
    """ID of the user."""


class InvitationPage(TypedDict):
    """A page of invitations."""

    items: list[OpenInvitation]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class Job(TypedDict):
    """A change of all users that match a filter, in the background."""

    action: str
    """The change: suspend, resume, assign-role or unassign-role. Later versions may add values."""

    changed: int
    """Number of users that the job has changed."""

    createdAt: str
    """When the job was started."""

    endedAt: str | None
    """When the job ended. Null while it runs."""

    expected: int
    """Number of users that matched at the start."""

    expectedIsExact: bool
    """Whether expected is exact. It is exact up to 10,000."""

    expiresAt: str | None
    """When the assignments expire. Null for never, and for other changes."""

    id: str
    """ID of the job."""

    problem: str | None
    """The code of the problem that stopped the job, such as unauthenticated or permission-denied."""

    reach: Reach | None
    """The reach of the assignments. Null for the whole tenant, and for other changes."""

    reason: str | None
    """The reason that the events of the users have."""

    refused: int
    """Number of users whose change was refused."""

    roleId: str | None
    """ID of the role that the job assigns or removes."""

    startedBy: JobStarter
    """Who started the job."""

    status: str
    """The state: running, completed, canceled, or stopped because of a problem. Later versions may add values."""

    unchanged: int
    """Number of users that needed no change, or are the user who started the job."""

    users: JobFilter
    """The users that the job changes."""


class JobFilter(TypedDict):
    """The filter of a job, without the text of its search."""

    department: str | None
    """Only users of this department."""

    group: str | None
    """Only members of this group."""

    role: str | None
    """Only users with this role."""

    searched: bool
    """Whether the job has a search text. The text is not returned, because it can be personal data."""

    status: str | None
    """Only users with this status."""


class JobPage(TypedDict):
    """A page of jobs."""

    items: list[Job]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class JobResult(TypedDict):
    """The outcome of a job for one user."""

    outcome: str
    """The outcome: changed, unchanged or refused. Later versions may add values."""

    problem: str | None
    """The code of the problem if the change was refused, such as beyond-own-permissions."""

    userId: str
    """ID of the user."""


class JobResultPage(TypedDict):
    """A page of results."""

    items: list[JobResult]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class JobStarter(TypedDict):
    """The principal who started a job."""

    id: str | None
    """ID of the principal."""

    type: str
    """Kind of principal: user, service_account or operator. Later versions may add values."""


class JobUsers(TypedDict):
    """Selects the users of a job. Without members, it selects all users."""

    department: NotRequired[str]
    """Only users of this department. Upper and lower case, invisible characters and the number of blanks do not matter. Must contain a visible character."""

    group: NotRequired[str]
    """Only members of this group. It needs the permission groups:read in the whole tenant."""

    q: NotRequired[str]
    """Up to 8 words. Only users with matches for all of them: each must be the beginning of a word in the name or the email address."""

    role: NotRequired[str]
    """Only users with this role. It needs the permission roles:read."""

    status: NotRequired[Literal["pending", "active", "suspended"]]
    """Only users with this status."""


class LinkDelivery(TypedDict):
    """How a link reaches the user. Without a body, Rolecall mails it."""

    delivery: NotRequired[Literal["mail", "return"]]
    """How the link reaches the user. With mail, Rolecall mails it. With return, the response has it once, and no mail is sent."""


class Login(TypedDict):
    """Email address and password."""

    deviceToken: NotRequired[str]
    """The deviceToken of an earlier sign-in of the user on this device. Sign-ins from known devices have separate limits, so that guesses from elsewhere do not lock the user out. Send it only with the transport bearer."""

    email: str
    """Email address of the user."""

    password: str
    """Password of the user."""

    transport: NotRequired[Literal["cookie", "bearer"]]
    """How the client gets the session. With cookie, the response sets cookies. With bearer, the response has the tokens in the body and sets no cookie. Mobile apps, and pages on another site, use bearer."""


class Logo(TypedDict):
    """The logo of a tenant, without the image."""

    height: int
    """Height in pixels."""

    mediaType: str
    """image/png, image/jpeg or image/webp. Later versions may add values."""

    size: int
    """Size in bytes."""

    updatedAt: str
    """When the logo was set."""

    width: int
    """Width in pixels."""


class MemberSource(TypedDict):
    """The directory or the connection that fills a group."""

    id: str
    """ID of the directory or the connection."""

    type: Literal["directory", "connection"]
    """directory or connection."""


class Membership(TypedDict):
    """The membership of a user in a group."""

    addedAt: str
    """When the user was added to the group."""

    addedBy: str | None
    """ID of the principal or the directory that added the user to the group. Null for an operator or a connection."""

    group: GroupName
    """The group."""


class MembershipPage(TypedDict):
    """A page of memberships."""

    items: list[Membership]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class OfferedConnection(TypedDict):
    """A connection with which users can sign in."""

    id: str
    """ID of the connection."""

    name: str
    """Name of the connection."""


class OfferedConnectionPage(TypedDict):
    """The connections with which users can sign in."""

    items: list[OfferedConnection]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class OidcCode(TypedDict):
    """The code of the sign-in, and its verifier."""

    code: str
    """The code that returnTo got."""

    codeVerifier: NotRequired[str]
    """The text of codeChallenge. Required if the sign-in began with a codeChallenge."""


class OpenInvitation(TypedDict):
    """An invitation that has not expired, with its user. The overview of the user shows whether it can be accepted."""

    createdAt: str
    """When the invitation was created."""

    createdBy: str | None
    """ID of the principal who created the invitation. Null for an operator."""

    expiresAt: str
    """When the invitation expires."""

    user: User
    """The user, with the members that the caller may read."""

    userId: str
    """ID of the user."""


class OpenedCommitment(TypedDict):
    """The data of an event to which its leaf commits."""

    data: str
    """The data. It is empty if the event has none."""

    salt: str
    """The salt in base64. The commitment in the leaf is the SHA-256 of a zero byte, the salt and the data, in base64."""


class OperatorWebhook(TypedDict):
    """A webhook of operators without its secret."""

    createdAt: str
    """When the webhook was created."""

    disabledReason: str | None
    """Why Rolecall disabled the webhook: status-410 (the answer of the endpoint) or failing (an item has failed for three days). Null otherwise. Later versions may add values."""

    enabled: bool
    """Whether items are sent."""

    id: str
    """ID of the webhook."""

    ignoreActors: list[str]
    """Events that these users, service accounts or operator keys caused are not sent."""

    types: list[str]
    """The types of events that are sent, or only * for all types."""

    updatedAt: str
    """When the webhook was changed last."""

    url: str
    """Where the items are sent. It begins with https://."""


class OperatorWebhookPage(TypedDict):
    """A page of webhooks of operators."""

    items: list[OperatorWebhook]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class Overview(TypedDict):
    """A summary of a user. Parts that the caller may not read are absent."""

    allowedActions: list[str]
    """The actions that the caller may perform on the user: update, delete, suspend, resume, invite, sendPasswordReset, changeEmail, assignRole, erase, resetFactors, revokeSessions or withdrawInvitation. Later versions may add values."""

    assignmentCount: NotRequired[int]
    """Number of role assignments of the user that have not expired."""

    assignments: NotRequired[list[Assignment]]
    """The role assignments of the user that have not expired. At most 100, and fewer if their reaches are large."""

    expiredAssignments: NotRequired[list[Assignment]]
    """Expired assignments, the most recently expired first. At most 100, and fewer if their reaches are large. They have no effect."""

    factors: NotRequired[FactorSummary]
    """The second factors of the user. Only the user, and callers who may reset the second factors of the user, get this member."""

    hasMorePermissions: NotRequired[bool]
    """Whether the user has further permissions. The list of permissions ends at about 512 KiB."""

    invitation: NotRequired[PendingInvitation | None]
    """The latest invitation, if it was not accepted. It can be expired or invalid: see the reasons in signIn. Null without such an invitation."""

    permissions: NotRequired[list[Grant]]
    """The permissions of the user, sorted by their text, and the roles that they come from. If hasMorePermissions is true, only the first ones."""

    recentEvents: NotRequired[list[Event]]
    """The latest events about the user, newest first."""

    sessions: NotRequired[SessionSummary]
    """The live sessions of the user."""

    signIn: NotRequired[SignInState]
    """Whether the user can sign in."""

    tokens: NotRequired[TokenSummary]
    """The API tokens of the user that have not expired."""

    user: User
    """The user, with the members that the caller may read."""


class OwnerInvitation(TypedDict):
    """The invitation of the first owner."""

    expiresAt: str
    """When the invitation expires."""

    link: NotRequired[str]
    """The link that the owner opens to set a password."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the token and the link are therefore not shown again. Absent otherwise."""

    token: NotRequired[str]
    """The token in the link."""


class Passkey(TypedDict):
    """A passkey."""

    createdAt: str
    """When the passkey was created."""

    id: str
    """ID of the passkey."""

    lastUsedAt: str | None
    """When the passkey was used last. Null for never."""

    name: str
    """Name of the passkey, for its owner."""


class PasskeyOptions(TypedDict):
    """Options for an authenticator."""

    publicKey: dict[str, Any]
    """Options for PublicKeyCredential.parseCreationOptionsFromJSON or parseRequestOptionsFromJSON."""


class PasswordReset(TypedDict):
    """The mail with a link to set a new password."""

    expiresAt: NotRequired[str]
    """When the link expires."""

    link: NotRequired[str]
    """The link that the user opens to set a password. Only with the delivery return."""

    secretWithheld: NotRequired[bool]
    """True if the request was a repeat, and the token and the link are therefore not shown again. To replace a lost link, send the request with a new idempotency key. Absent otherwise."""

    token: NotRequired[str]
    """The token in the link. Only with the delivery return."""

    userId: str
    """ID of the user."""


class PendingInvitation(TypedDict):
    """An invitation that was not accepted."""

    createdAt: str
    """When the invitation was created."""

    createdBy: str | None
    """ID of the principal who created the invitation. Null for an operator."""

    expiresAt: str
    """When the invitation expires."""


Permission: TypeAlias = 'str'
"""[application/]resource[.field]:action, each part a name or *. Without an application, it is one of Rolecall's own permissions or covers one."""


class PermissionCheck(TypedDict):
    """A permission to check, for a department or in the whole tenant."""

    department: NotRequired[str | None]
    """The department for whose users to check the permission. Without it, the caller must have the permission in the whole tenant. Null is the same as its absence. Must contain a visible character."""

    permission: SinglePermission
    """The permission to check, without wildcards, such as shop/invoices:approve."""


class Problem(TypedDict):
    """An error (RFC 9457)."""

    challenge: NotRequired[str]
    """Only if a second factor is needed. Send it with the second factor within five minutes."""

    code: str
    """Stable code of the error, for programs."""

    detail: str
    """Explanation of the error for people."""

    errors: NotRequired[list[Fault]]
    """The field errors of the request, at most 100."""

    instance: str
    """Path of the request."""

    methods: NotRequired[list[str]]
    """The methods that the user can use: totp, passkey or recovery-code. Later versions may add values."""

    moreErrors: NotRequired[bool]
    """True if the request has more than 100 field errors. Absent otherwise."""

    publicKey: NotRequired[dict[str, Any]]
    """Options for navigator.credentials.get. Only with the code second-factor-required, if passkey is one of the methods."""

    requestId: str
    """ID of the request."""

    status: int
    """Status of the response."""

    title: str
    """Short summary of the error."""

    type: str
    """Path of the page that explains the code."""


class Provisioning(TypedDict):
    """The access of users that a connection creates."""

    department: NotRequired[str | None]
    """Department of new users. Null for no department. Must contain a visible character."""

    roleIds: list[str]
    """IDs of the roles that new users get in the whole tenant. The caller must be able to assign them. This is checked again at each sign-in that creates a user. Empty for no roles."""


class Reach(TypedDict):
    """The departments in which the permissions of an assigned role apply."""

    departments: list[str]
    """The names of the departments. Upper and lower case, invisible characters and the number of blanks do not matter."""


Replay = TypedDict("Replay", {
    "from": "str",  # Send items of events at this time or later.
    "to": "str",  # Send items of events before this time.
})
"""The time whose items are sent again."""


class ResetPassword(TypedDict):
    """The token of the link, and the password to set."""

    password: str
    """The new password. It must have at least passwordMinimum characters, and must not be easy to guess."""

    token: str
    """The token in the link."""


class RestoredUser(TypedDict):
    """A user who was deleted and is restored. The user needs an invitation to sign in."""

    groupsNotRestored: NotRequired[list[str]]
    """The former groups of the user to which the user was not added again, because the caller may not add the user or because they were deleted. Absent if the caller may not read groups."""

    rolesNotRestored: NotRequired[list[str]]
    """The former roles of the user that were not assigned again, because the caller may not assign them or because they were deleted. Absent if the caller may not read the roles of the user."""

    user: User
    """The user, with the members that the caller may read."""


class Role(TypedDict):
    """A named set of permissions. Callers without roles:read get the ID only."""

    createdAt: NotRequired[str]
    """When the role was created."""

    description: NotRequired[str]
    """Description of the role."""

    grants: NotRequired[list[str]]
    """Permissions that users with the role may assign to others without having them."""

    id: str
    """ID of the role."""

    key: NotRequired[str | None]
    """Stable name of the role for programs. Null without one."""

    name: NotRequired[str]
    """Name of the role."""

    permissions: NotRequired[list[str]]
    """The permissions of the role. Each has the form [application/]resource[.field]:action. Each part is a name or *."""

    system: NotRequired[bool]
    """Whether this is a system role, which cannot be changed or deleted."""

    updatedAt: NotRequired[str]
    """When the role was changed last."""


class RoleName(TypedDict):
    """The names of a role. Callers without roles:read get the ID only."""

    id: str
    """ID of the role."""

    key: NotRequired[str | None]
    """Stable name of the role for programs. Null without one."""

    name: NotRequired[str]
    """Name of the role."""


class RolePage(TypedDict):
    """A page of roles."""

    items: list[Role]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""

    total: NotRequired[int]
    """Number of items on all pages, with the filters of the request. Only with count=true."""

    totalIsExact: NotRequired[bool]
    """Whether total is exact. It is exact up to 10,000."""


class ScopedPermissions(TypedDict):
    """Permissions for the users of some departments."""

    permissions: list[str]
    """The permissions. They can have wildcards."""

    reach: Reach
    """The departments for whose users the caller has the permissions."""


class SecondFactorRule(TypedDict):
    """Which users must have a second factor."""

    required: str
    """Which users must have a second factor: none, all, or roles (the users with one of the roles in the member roles)."""

    roles: list[str]
    """IDs of the roles whose users must have a second factor."""


class ServiceAccount(TypedDict):
    """A service account: a program of the tenant. Callers without service-accounts:read get the ID only."""

    createdAt: NotRequired[str]
    """When the service account was created."""

    description: NotRequired[str]
    """Description of the service account."""

    id: str
    """ID of the service account."""

    name: NotRequired[str]
    """Name of the service account."""

    status: NotRequired[str]
    """active or suspended. Later versions may add values."""

    updatedAt: NotRequired[str]
    """When the service account was changed last."""


class ServiceAccountPage(TypedDict):
    """A page of service accounts."""

    items: list[ServiceAccount]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""

    total: NotRequired[int]
    """Number of items on all pages, with the filters of the request. Only with count=true."""

    totalIsExact: NotRequired[bool]
    """Whether total is exact. It is exact up to 10,000."""


class Session(TypedDict):
    """A session."""

    authenticatedAt: str
    """When the user signed in. Re-authentication does not change it."""

    confirmedAt: str | None
    """When the user last re-authenticated. Null for never."""

    expiresAt: str
    """When the session expires even if it is used (maximum session length)."""

    id: str
    """ID of the session."""

    idleExpiresAt: str
    """When the session expires if it is not used (idle timeout)."""

    secondFactor: bool
    """Whether the user signed in with a second factor."""

    tokenExpiresAt: NotRequired[str]
    """When the token of the request expires. Only in GET /auths/session, and only after a newer token of the session was used. A later use of the old token ends the session, so keep the response no longer than this."""


class SessionSummary(TypedDict):
    """The live sessions of a user."""

    count: int
    """Number of live sessions."""

    newestAt: str | None
    """When the newest session began. Null without sessions."""


class SignIn(TypedDict):
    """The signed-in user and the session."""

    deviceToken: NotRequired[str]
    """Shows at the next sign-in that the user has signed in on this device before. Only with the transport bearer. Absent after a refresh."""

    expiresAt: NotRequired[str]
    """When the token expires. Only with the transport bearer."""

    recoveryCodes: NotRequired[list[str]]
    """Ten recovery codes. Each works once. Absent unless the sign-in enrolled a second factor. They are not returned again."""

    session: Session
    """The session."""

    token: NotRequired[str]
    """The token of the session. Send it as Authorization: Bearer rs_…. Only with the transport bearer."""

    user: User
    """The user who is signed in."""


class SignInByPasskey(TypedDict):
    """The response of the authenticator."""

    deviceToken: NotRequired[str]
    """The deviceToken of an earlier sign-in of the user on this device. Sign-ins from known devices have separate limits, so that guesses from elsewhere do not lock the user out. Send it only with the transport bearer."""

    passkey: dict[str, Any]
    """The result of toJSON() of the credential that the browser returned."""

    transport: NotRequired[Literal["cookie", "bearer"]]
    """How the client gets the session. With cookie, the response sets cookies. With bearer, the response has the tokens in the body and sets no cookie. Mobile apps, and pages on another site, use bearer."""


class SignInReason(TypedDict):
    """A reason why sign-ins are refused."""

    code: str
    """tenant-suspended, user-suspended, user-pending, invitation-void (its creator could not invite the user now), invitation-expired, no-password, no-identity (only owners can sign in with a password, and the user has no identity), second-factor-enrolment-required, second-factor-unusable (the user has passkeys only, and no domain is configured for them) or too-many-attempts (some sign-ins are refused until a given time, as covers says). Later versions may add values."""

    covers: str | None
    """For too-many-attempts, the sign-ins that are refused: source (from one address or network), unknown-browsers (from browsers in which the user has not signed in) or second-factor (codes from such browsers). Later versions may add values. Null for all."""

    operation: str | None
    """ID of the operation that removes the reason. Null if no operation does."""

    remedy: str | None
    """Method and path of this operation, such as POST /users/{id}/password-resets. Null if no operation does."""

    source: str | None
    """The address or network for which sign-ins are refused. Null if the caller may not read events."""

    until: str | None
    """When the reason ends by itself. Null if it does not."""


class SignInState(TypedDict):
    """Whether the user can sign in, and if not, why."""

    canSignIn: bool
    """True if reasons is empty, so that nothing prevents the user from signing in. False also if only some of the sign-ins of the user are refused."""

    lastLoginAt: str | None
    """When the user signed in last. Null for never."""

    reasons: list[SignInReason]
    """The reasons that prevent the user from signing in."""


class SignOutOidc(TypedDict):
    """The request body of a sign-out, also at the identity provider."""

    returnTo: str
    """Where the identity provider returns the browser: exactly one of the addresses of --oidc-return-urls."""


class SignedOutOidc(TypedDict):
    """The result of a sign-out."""

    url: str | None
    """URL of the identity provider, to open in the browser by navigation. It has the ID token of the sign-in, so do not log it. Null if the browser cannot sign out there."""


SinglePermission: TypeAlias = 'str'
"""[application/]resource[.field]:action, each part a name. Without an application, it is one of Rolecall's own permissions."""


class SkipItems(TypedDict):
    """Which items are skipped."""

    all: NotRequired[bool]
    """Whether to skip all items of events until now. The default is false."""


class StartAssignJob(TypedDict):
    """The users and the role to assign to them."""

    expiresAt: NotRequired[str]
    """When the assignment expires, in the future. Omit it for never."""

    reach: NotRequired[Reach]
    """The reach of the assignment. Omit it for the whole tenant."""

    roleId: str
    """ID of the role to assign."""

    users: JobUsers
    """The users to change. An empty object selects all users."""


class StartOidc(TypedDict):
    """The connection, and where the browser returns."""

    codeChallenge: NotRequired[str]
    """SHA-256 of a random text, in base64url without padding (PKCE S256). Required with the purpose sign-in."""

    connectionId: str
    """ID of the connection."""

    email: NotRequired[str]
    """Address that the user has typed. The page of the identity provider can fill it in. Must contain a visible character."""

    invitation: NotRequired[str]
    """Token of the invitation whose link the user has opened. The identity is linked to the invited user if the identity provider states the same address."""

    purpose: NotRequired[Literal["sign-in", "confirm", "link"]]
    """sign-in: to start a session. confirm: to re-authenticate without a password. link: to add the identity to the signed-in user."""

    returnTo: str
    """Where the browser returns: exactly one of the addresses of --oidc-return-urls."""


class StartStatusJob(TypedDict):
    """The users to suspend or to resume."""

    reason: NotRequired[str | None]
    """The reason for the operation. It is recorded in the event. Must be empty or contain a visible character."""

    users: JobUsers
    """The users to change. An empty object selects all users."""


class StartUnassignJob(TypedDict):
    """The users and the role to remove from them."""

    roleId: str
    """ID of the role to remove."""

    users: JobUsers
    """The users to change. An empty object selects all users."""


class StartedOidc(TypedDict):
    """A started sign-in with an identity provider."""

    url: str
    """URL of Rolecall, to open in the browser by navigation within two minutes."""


class Tenant(TypedDict):
    """A tenant. Callers without tenant:read get the ID only."""

    createdAt: NotRequired[str]
    """When the tenant was created."""

    displayName: NotRequired[str]
    """Display name of the tenant."""

    id: str
    """ID of the tenant."""

    logo: NotRequired[Logo | None]
    """The logo of the tenant. GET /tenant/logo returns the image. Null if the tenant has no logo."""

    name: NotRequired[str]
    """Name of the tenant. Requests send it in the header x-tenant-schema. It never changes."""

    purgeAt: NotRequired[str]
    """Only for a deleted tenant: until when it can be restored. After that, its data is removed. Only operators can read deleted tenants."""

    settings: NotRequired[TenantSettings]
    """The effective settings."""

    status: NotRequired[str]
    """active, suspended or deleted. Later versions may add values."""

    updatedAt: NotRequired[str]
    """When the tenant was changed last."""


class TenantOwner(TypedDict):
    """The first owner of a tenant."""

    email: str
    """Email address."""

    name: str
    """Full name. It must have at least as many characters as the setting nameMinimum of new tenants. Must contain a visible character."""


class TenantPage(TypedDict):
    """A page of tenants."""

    items: list[Tenant]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class TenantSettings(TypedDict):
    """The effective settings of a tenant."""

    brandColor: str | None
    """The color of the pages where users sign in, accept an invitation, or follow another mailed link, in the form #rrggbb. Null for the color of the console."""

    eventsKeptSeconds: int
    """How long an event is kept. The operators of the instance can set a minimum."""

    idempotencyKeptSeconds: int
    """How long an idempotency key is kept. Keys are not kept longer than events."""

    invitationSeconds: int
    """How long an invitation can be accepted."""

    mailSenderName: str | None
    """The sender name of the tenant's mail. Null for the displayName."""

    nameMinimum: int
    """Minimum length of the names of users, departments, roles and service accounts, in characters. Names that are shorter when it is raised stay."""

    passwordMinimum: int
    """Minimum length of a new password, in characters. Values below 15 are allowed only if all users need a second factor (NIST SP 800-63B-4)."""

    passwordResetSeconds: int
    """How long the link of a password reset works."""

    passwordSignIn: str
    """Which users can begin a session with a password, a passkey alone or a mailed link: all, or only owners. With owners, other users sign in with a connection to an identity provider."""

    reauthenticationSeconds: int
    """Maximum age of the sign-in or re-authentication for operations that need step-up. 0 means no maximum."""

    refreshGraceSeconds: int
    """How long the old token of a session works after the new one is first used."""

    secondFactor: SecondFactorRule
    """Which users must have a second factor."""

    sessionAbsoluteSeconds: int
    """Maximum session length. The default is a day for users who need a second factor."""

    sessionIdleSeconds: int
    """Idle timeout of sessions. At most sessionAbsoluteSeconds. The default is an hour for users who need a second factor."""

    sessionsPerUser: int
    """Maximum number of sessions of a user at the same time. Another sign-in ends the oldest session."""


class TenantSummary(TypedDict):
    """A summary of the tenant. Parts that the caller may not read are absent."""

    activity: NotRequired[list[DayActivity]]
    """The number of events of each of the last 30 days, oldest first. Needs events:read."""

    expiringRoles: NotRequired[ExpiringRoles]
    """Role assignments that expire within 14 days. Those of users need roles:read. Those of service accounts also need service-accounts:read."""

    expiringTokens: NotRequired[ExpiringTokens]
    """API tokens that expire within 14 days. Those of users need sessions:read. Those of service accounts need service-accounts:read."""

    failedSignIns: NotRequired[FailedSignIns]
    """Failed sign-ins of the last 24 hours. Needs events:read."""

    invitations: NotRequired[BoundedCount]
    """Invitations that were not accepted and have not expired. At most 1,000 are counted. Needs users:invite."""

    secondFactors: NotRequired[FactorCoverage]
    """How many active users have a second factor. Needs users:reset-factors and users.status:read."""


class Through(TypedDict):
    """The way in which a user has a role that is not assigned directly."""

    group: GroupName
    """The group."""


class TokenSummary(TypedDict):
    """The API tokens of a user."""

    count: int
    """Number of API tokens that have not expired."""


class TotpSecret(TypedDict):
    """A secret for an authenticator app."""

    secret: str
    """The secret in base32, to type into the app."""

    uri: str
    """The secret as an otpauth:// URI, to show as a QR code."""


class UpdateConnection(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change."""

    acrValues: NotRequired[list[str] | None]
    """Values of the claim acr that prove a second factor. Null or empty for none."""

    amrValues: NotRequired[list[str] | None]
    """Values of the claim amr that prove a second factor. Null or empty for none."""

    clientId: NotRequired[str]
    """ID of the client that the identity provider has for Rolecall."""

    clientSecret: NotRequired[str]
    """New secret of the client. Responses and events never contain it."""

    domains: NotRequired[list[str]]
    """Domains of email addresses. POST /auths/connections/find returns this connection for their addresses. If there are any, users are linked by address or created only for addresses of these domains. The list cannot be emptied while the connection links users by address or creates users."""

    groups: NotRequired[ConnectionGroups | None]
    """Fills groups by a claim of the identity provider, at each sign-in. An object replaces the whole object. Null: no claim is read, and the groups stay as they are."""

    linking: NotRequired[Literal["invited", "verified-email"]]
    """Which users a new identity is linked to."""

    name: NotRequired[str]
    """Name of the connection. Callers who are not signed in can read it. Must contain a visible character."""

    provisioning: NotRequired[Provisioning | None]
    """Creates a user at the first sign-in with an unknown identity, with this access. Null: no users are created."""

    secondFactor: NotRequired[Literal["require", "trust"]]
    """Whether a sign-in can count as one with a second factor. trust needs acrValues or amrValues."""


class UpdateDirectory(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change."""

    deprovisioning: NotRequired[Literal["suspend", "delete"]]
    """What happens to a user that the directory deletes."""

    matching: NotRequired[Literal["refuse", "email"]]
    """What happens when the directory creates a user whose address another user has."""

    name: NotRequired[str]
    """Name of the directory. Must contain a visible character."""

    paused: NotRequired[bool]
    """Whether to refuse the requests of the directory."""


class UpdateGroup(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change. Null clears a member."""

    description: NotRequired[str | None]
    """Description of the group. Must be empty or contain a visible character."""

    externalId: NotRequired[str | None]
    """ID of the group in another system, unique in the tenant. Null for none. Must contain a visible character."""

    name: NotRequired[str]
    """Name of the group, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""


class UpdateOperatorWebhook(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change."""

    enabled: NotRequired[bool]
    """Whether to send items. A webhook that is enabled again continues with the first item that was not delivered."""

    ignoreActors: NotRequired[list[str]]
    """Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."""

    types: NotRequired[list[str]]
    """The types of events to send, or only * for all types."""

    url: NotRequired[str]
    """Where to send the items. It must begin with https:// and have a host on the internet, or in a network of --operator-webhook-networks."""


class UpdatePasskey(TypedDict):
    """The members to change."""

    name: NotRequired[str]
    """Name of the passkey, for its owner. Must contain a visible character."""


class UpdateRole(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change. A list replaces the whole old list. Null clears a member."""

    description: NotRequired[str | None]
    """Description of the role. Must be empty or contain a visible character."""

    grants: NotRequired[list[Permission] | None]
    """Permissions that users with the role may assign to others without having them. Null or empty for none."""

    name: NotRequired[str]
    """Name of the role, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""

    permissions: NotRequired[list[Permission] | None]
    """The permissions of the role. Each has the form [application/]resource[.field]:action. Each part is a name or *. Null or empty for none."""


class UpdateSecondFactorRule(TypedDict):
    """Which users must have a second factor."""

    required: NotRequired[Literal["none", "all", "roles"]]
    """Which users must have a second factor: none, all, or roles (the users with one of the roles in the member roles)."""

    roles: NotRequired[list[str]]
    """IDs of the roles whose users must have a second factor. Stored only if the member required has the value roles. It can be empty only with another value."""


class UpdateServiceAccount(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change. Null clears a member."""

    description: NotRequired[str | None]
    """Description of the service account. Must be empty or contain a visible character."""

    name: NotRequired[str]
    """Name of the service account, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""


class UpdateTenant(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change."""

    displayName: NotRequired[str]
    """Display name of the tenant. Must contain a visible character."""

    settings: NotRequired[UpdateTenantSettings]
    """The settings to change."""


class UpdateTenantSettings(TypedDict):
    """The settings to change. Absent settings do not change. Where null is allowed, it restores the default."""

    brandColor: NotRequired[str | None]
    """The color of the pages where users sign in, accept an invitation, or follow another mailed link, in the form #rrggbb. Null for the color of the console."""

    eventsKeptSeconds: NotRequired[int | None]
    """How long an event is kept. The operators of the instance can set a minimum. Null for the default, 34560000."""

    idempotencyKeptSeconds: NotRequired[int | None]
    """How long an idempotency key is kept. Keys are not kept longer than events. Null for the default, 86400."""

    invitationSeconds: NotRequired[int | None]
    """How long an invitation can be accepted. Null for the default, 259200."""

    mailSenderName: NotRequired[str | None]
    """The sender name of the tenant's mail. Null for the displayName. Must contain a visible character."""

    nameMinimum: NotRequired[int | None]
    """Minimum length of the names of users, departments, roles and service accounts, in characters. Names that are shorter when it is raised stay. Null for the default, 3."""

    passwordMinimum: NotRequired[int | None]
    """Minimum length of a new password, in characters. Values below 15 are allowed only if all users need a second factor (NIST SP 800-63B-4). Null for the default, 15."""

    passwordResetSeconds: NotRequired[int | None]
    """How long the link of a password reset works. Null for the default, 3600."""

    passwordSignIn: NotRequired[Literal["all", "owners"]]
    """Which users can begin a session with a password, a passkey alone or a mailed link: all, or only owners. With owners, other users sign in with a connection to an identity provider."""

    reauthenticationSeconds: NotRequired[int | None]
    """Maximum age of the sign-in or re-authentication for operations that need step-up. 0 means no maximum. Null for the default, 900."""

    refreshGraceSeconds: NotRequired[int | None]
    """How long the old token of a session works after the new one is first used. Null for the default, 10."""

    secondFactor: NotRequired[UpdateSecondFactorRule]
    """Which users must have a second factor."""

    sessionAbsoluteSeconds: NotRequired[int | None]
    """Maximum session length. The default is a day for users who need a second factor. Null for the default, 604800."""

    sessionIdleSeconds: NotRequired[int | None]
    """Idle timeout of sessions. At most sessionAbsoluteSeconds. The default is an hour for users who need a second factor. Null for the default, 43200."""

    sessionsPerUser: NotRequired[int | None]
    """Maximum number of sessions of a user at the same time. Another sign-in ends the oldest session. Null for the default, 100."""


class UpdateUser(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change. Null clears a member."""

    department: NotRequired[str | None]
    """Department of the user. It must have at least nameMinimum characters, a setting of the tenant. The reach of a role can be limited to departments. Null for no department. Must contain a visible character."""

    externalId: NotRequired[str | None]
    """ID of the user in your application, unique in the tenant. Null for none. Must contain a visible character."""

    metadata: NotRequired[dict[str, str | None] | None]
    """Key-value pairs to change. The value null removes its pair. Null instead of the object removes the pairs that the user has. The user can have at most 50 pairs after the change."""

    name: NotRequired[str]
    """Full name. It must have at least nameMinimum characters, a setting of the tenant. Must contain a visible character."""


class UpdateWebhook(TypedDict):
    """A merge patch (RFC 7396). Absent members do not change."""

    enabled: NotRequired[bool]
    """Whether to send items. A webhook that is enabled again continues with the first item that was not delivered."""

    ignoreActors: NotRequired[list[str]]
    """Do not send events that these users, service accounts or operator keys caused. Empty for no exceptions."""

    serviceAccountId: NotRequired[str]
    """ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."""

    types: NotRequired[list[str]]
    """The types of events to send, or only * for all types."""

    url: NotRequired[str]
    """Where to send the items. It must begin with https:// and have a host on the internet."""


class User(TypedDict):
    """A user. Members that the caller may not read are absent."""

    createdAt: NotRequired[str]
    """When the user was created."""

    deletedAt: NotRequired[str]
    """When the user was deleted. Absent except in a list of deleted users."""

    department: NotRequired[str | None]
    """Department of the user. The reach of a role can be limited to departments."""

    email: NotRequired[str]
    """Email address, spelled as it was sent."""

    externalId: NotRequired[str | None]
    """ID of the user in your application, unique in the tenant."""

    factors: NotRequired[IncludedFactors]
    """The second factors of the user. Only with include=factors, for callers with users:reset-factors for the user."""

    hasMoreRoles: NotRequired[bool]
    """Whether the user has more roles than the member roles contains."""

    id: str
    """ID of the user."""

    lastLoginAt: NotRequired[str | None]
    """When the user signed in last. Null for never. Only with include=lastLoginAt, for callers who may read the status of the user."""

    managedBy: NotRequired[str | None]
    """ID of the directory that manages the user. Only the directory can then change the name, the address and the department. Null for no directory."""

    metadata: NotRequired[dict[str, str]]
    """Key-value pairs that the application stores with the user."""

    name: NotRequired[str]
    """Full name."""

    roles: NotRequired[list[RoleName]]
    """Roles of the user whose assignment has not expired, at most 10. Only with include=roles, for callers with roles:read for the user."""

    status: NotRequired[str]
    """pending, active or suspended. In a list of deleted users, deleted. Later versions may add values."""

    updatedAt: NotRequired[str]
    """When the user was last changed."""


class UserInTenant(TypedDict):
    """A user with an email address that was searched in all tenants."""

    displayName: str
    """Display name of the tenant."""

    tenant: str
    """Name of the tenant."""

    tenantStatus: str
    """Status of the tenant: active or suspended."""

    userId: str
    """ID of the user."""

    userStatus: str
    """Status of the user: pending, active or suspended."""


class UserInTenantPage(TypedDict):
    """A page of users in several tenants."""

    items: list[UserInTenant]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class UserPage(TypedDict):
    """A page of users."""

    items: list[User]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""

    restrictedBy: NotRequired[list[str]]
    """Members by which the list is filtered, sorted or searched, and which the caller may read of some users only. The other users are not in the list."""

    total: NotRequired[int]
    """Number of items on all pages, with the filters of the request. Only with count=true."""

    totalIsExact: NotRequired[bool]
    """Whether total is exact. It is exact up to 10,000."""


class UserSession(TypedDict):
    """A live session of a user."""

    address: str | None
    """Client address at sign-in."""

    client: str | None
    """Name of the client at sign-in, such as Firefox on Linux."""

    connectionId: str | None
    """ID of the connection with which the user signed in. Null if the user signed in without an identity provider."""

    createdAt: str
    """When the user signed in."""

    current: bool
    """Whether this is the session of the request."""

    expiresAt: str
    """When the session expires even if it is used (maximum session length)."""

    id: str
    """ID of the session."""

    lastUsedAt: str
    """When the session was used last, to about a minute."""

    secondFactor: bool
    """Whether the user signed in with a second factor. If not, the session is refused while the tenant requires a second factor of the user."""


class UserSessionPage(TypedDict):
    """A page of sessions."""

    items: list[UserSession]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class Webhook(TypedDict):
    """A webhook without its secret. Callers without webhooks:read get the ID only."""

    createdAt: NotRequired[str]
    """When the webhook was created."""

    disabledReason: NotRequired[str | None]
    """Why Rolecall disabled the webhook: status-410 (the answer of the endpoint), failing (an item has failed for three days) or service-account-deleted. Null otherwise. Later versions may add values."""

    enabled: NotRequired[bool]
    """Whether items are sent."""

    id: str
    """ID of the webhook."""

    ignoreActors: NotRequired[list[str]]
    """Events that these users, service accounts or operator keys caused are not sent."""

    serviceAccountId: NotRequired[str]
    """ID of the service account that decides which values the items have. It needs changes:read in the whole tenant."""

    types: NotRequired[list[str]]
    """The types of events that are sent, or only * for all types."""

    updatedAt: NotRequired[str]
    """When the webhook was changed last."""

    url: NotRequired[str]
    """Where the items are sent. It begins with https://."""


class WebhookDelivery(TypedDict):
    """An attempt to send an item."""

    at: str
    """When the attempt ended, to the millisecond."""

    attempt: int
    """The number of the attempt for this item, beginning with 1."""

    delivered: bool
    """Whether the endpoint answered with a status from 200 to 299."""

    durationMs: int
    """How long the attempt took, in milliseconds."""

    error: str | None
    """Why the attempt failed: status, redirect, timeout, address-refused, name-unresolved, tls, connection, permission-denied (the service account lacks changes:read), service-account-suspended or secret-unreadable. Null if it was delivered. Later versions may add values."""

    id: str
    """ID of the attempt."""

    itemId: str
    """ID of the item: the header webhook-id, and the ID of the event."""

    status: int | None
    """The status of the answer. Null without an answer."""

    type: str
    """Type of the event, or webhook.test. Later versions may add values."""


class WebhookDeliveryPage(TypedDict):
    """A page of attempts."""

    items: list[WebhookDelivery]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class WebhookPage(TypedDict):
    """A page of webhooks."""

    items: list[Webhook]
    """The items of the page."""

    nextCursor: str | None
    """The cursor of the next page. It is null only on the last page."""


class WebhookTestItem(TypedDict):
    """A test that will be sent."""

    itemId: str
    """ID of the item of the test."""
