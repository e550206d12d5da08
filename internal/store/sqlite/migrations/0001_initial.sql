-- +goose Up
-- Times are microseconds since 1970; "never" is 9223372036854775807. Ids are
-- UUIDs of 16 bytes. Keys ending in _key are folded in Go. Every table of a
-- tenant leads its keys with tenant_id.

-- Which programs each migration leaves able to serve: those that know at least
-- this one. Every migration adds its row.
create table compatibility (
    migration integer not null primary key,
    oldest    integer not null
) strict;
insert into compatibility (migration, oldest) values (1, 1);

create table instance_keys (
    id         integer not null primary key,
    secret     blob    not null,
    created_at integer not null
) strict;

create table tenants (
    id           blob    not null primary key,
    name         text    not null,
    display_name text    not null,
    status       text    not null, -- active, suspended, deleted, purged
    settings     text    not null,
    created_at   integer not null,
    updated_at   integer not null,
    version      integer not null
) strict, without rowid;
-- A deleted tenant keeps its row, and with it its name, until it is purged and
-- 30 days have passed.
create unique index tenants_name on tenants (name);
create index tenants_deleted on tenants (updated_at) where status = 'deleted';

-- One row a tenant: the lock that acts take which could leave it ownerless.
create table tenant_guards (
    tenant_id blob    not null primary key references tenants (id),
    n         integer not null
) strict, without rowid;

create table users (
    tenant_id      blob    not null,
    id             blob    not null,
    email          text    not null,
    email_key      text    not null,
    name           text    not null,
    name_key       text    not null,
    department     text,
    department_key text,
    external_id    text,
    metadata       text    not null, -- a JSON object of strings
    status         text    not null,
    words          text    not null, -- " nada nlovelace eada eexample": member letter and word
    last_login_at  integer not null, -- 0: never
    created_at     integer not null,
    updated_at     integer not null,
    version        integer not null,
    primary key (tenant_id, id)
) strict, without rowid;
-- Of two violated indexes SQLite names the one that was made last, and PostgreSQL
-- the one that was made first.
create unique index users_external_id on users (tenant_id, external_id) where external_id is not null;
create unique index users_email on users (tenant_id, email_key);
create index users_name on users (tenant_id, name_key, id);
create index users_department on users (tenant_id, department_key, id) where department_key is not null;

-- One row for each word of a user, whether of the name, the address or both, kept
-- equal to users.words by the statements that write users.
create table user_words (
    tenant_id blob not null,
    word      text not null,
    user_id   blob not null,
    primary key (tenant_id, word, user_id)
) strict, without rowid;

create table passwords (
    tenant_id  blob    not null,
    user_id    blob    not null,
    hash       text    not null,
    changed_at integer not null,
    primary key (tenant_id, user_id),
    constraint passwords_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;

-- The one invitation of a user that can be accepted.
create table invitations (
    tenant_id  blob    not null,
    user_id    blob    not null,
    hash       blob    not null,
    created_by blob,
    created_at integer not null,
    expires_at integer not null,
    primary key (tenant_id, user_id),
    constraint invitations_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index invitations_hash on invitations (tenant_id, hash);
create index invitations_expiry on invitations (tenant_id, expires_at);

-- What is left of a deleted user, for a restore.
create table tombstones (
    tenant_id  blob    not null,
    user_id    blob    not null,
    deleted_at integer not null,
    content    text    not null, -- the user and the assignments as JSON
    primary key (tenant_id, user_id)
) strict, without rowid;
create index tombstones_deleted on tombstones (tenant_id, deleted_at);

create table roles (
    tenant_id   blob    not null,
    id          blob    not null,
    "key"       text,
    name        text    not null,
    name_key    text    not null,
    words       text    not null, -- " support agent"
    description text    not null,
    permissions text    not null, -- a JSON array of strings
    grants      text    not null,
    system      integer not null, -- 0 or 1
    created_at  integer not null,
    updated_at  integer not null,
    version     integer not null,
    primary key (tenant_id, id)
) strict, without rowid;
create unique index roles_key on roles (tenant_id, "key") where "key" is not null;
create unique index roles_name on roles (tenant_id, name_key);

create table assignments (
    tenant_id   blob    not null,
    user_id     blob    not null,
    role_id     blob    not null,
    departments text,             -- a JSON array of names; null: everywhere
    expires_at  integer not null, -- never: the largest integer
    granted_by  blob,             -- null: an operator
    granted_at  integer not null,
    primary key (tenant_id, user_id, role_id),
    constraint assignments_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint assignments_role foreign key (tenant_id, role_id) references roles (tenant_id, id) on delete cascade
) strict, without rowid;
create index assignments_role on assignments (tenant_id, role_id, user_id);

create table sessions (
    tenant_id        blob    not null,
    id               blob    not null,
    user_id          blob    not null,
    generation       integer not null, -- the newest that was presented
    authenticated_at integer not null,
    last_used_at     integer not null,
    expires_at       integer not null,
    source           text    not null,
    primary key (tenant_id, id),
    constraint sessions_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;
create index sessions_user on sessions (tenant_id, user_id, id);
create index sessions_expiry on sessions (tenant_id, expires_at);

create table session_tokens (
    tenant_id  blob    not null,
    hash       blob    not null,
    session_id blob    not null,
    generation integer not null,
    retired_at integer not null, -- when its successor was first presented
    sealed     blob,             -- its successor, under a key derived from this token
    primary key (tenant_id, hash),
    foreign key (tenant_id, session_id) references sessions (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index session_tokens_generation on session_tokens (tenant_id, session_id, generation);

create table idempotency_keys (
    tenant_id   blob    not null,
    user_id     blob    not null,
    operation   text    not null,
    hash        blob    not null,
    fingerprint blob    not null,
    expires_at  integer not null,
    status      integer not null,
    location    text    not null,
    resource_id blob    not null,
    resource    text,             -- JSON; null once erased
    primary key (tenant_id, user_id, operation, hash)
) strict, without rowid;
create index idempotency_keys_resource on idempotency_keys (tenant_id, resource_id);
create index idempotency_keys_expiry on idempotency_keys (tenant_id, expires_at);

create table events (
    tenant_id    blob    not null,
    id           blob    not null,
    type         text    not null,
    occurred_at  integer not null,
    actor_type   text    not null,
    actor_id     blob,
    actor_via    text    not null,
    subject_type text    not null,
    subject_id   blob    not null,
    members      text    not null, -- a JSON array of names
    request_id   text    not null,
    session_id   blob,
    source       text    not null,
    reason       text    not null,
    before       text,             -- JSON; what it says is erased with the person
    after        text,
    primary key (tenant_id, id)
) strict, without rowid;
create index events_subject on events (tenant_id, subject_id, id);

-- Counters of sign-in attempts. They belong to no tenant, so that an unknown
-- tenant costs the same writes; a key is a keyed hash that holds the tenant.
create table attempts (
    bucket  blob    not null primary key,
    n       integer not null,
    ends_at integer not null
) strict, without rowid;
create index attempts_end on attempts (ends_at);
