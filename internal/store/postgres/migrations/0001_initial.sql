-- +goose Up
-- Times are microseconds since 1970; "never" is 9223372036854775807. Keys ending
-- in _key are folded in Go. Every table of a tenant leads its keys with
-- tenant_id and sees only the rows of the tenant in rolecall.tenant. They do not
-- refer to tenants: every insert would lock the one row of its tenant, together
-- with all others under way. Texts that are compared or sorted are collate "C", so
-- that both databases agree.

-- Which programs each migration leaves able to serve: those that know at least
-- this one. Every migration adds its row.
create table compatibility (
    migration bigint  not null primary key,
    oldest    bigint  not null
);
insert into compatibility (migration, oldest) values (1, 1);

create table instance_keys (
    id         bigint not null primary key,
    secret     bytea  not null,
    created_at bigint not null
);

create table tenants (
    id           uuid             not null primary key,
    name         text collate "C" not null,
    display_name text             not null,
    status       text collate "C" not null, -- active, suspended, deleted
    settings     text             not null,
    created_at   bigint           not null,
    updated_at   bigint           not null,
    version      bigint           not null
);
-- A deleted tenant keeps its row, and with it its name, until it is purged and
-- 30 days have passed.
create unique index tenants_name on tenants (name);
create index tenants_deleted on tenants (updated_at) where status = 'deleted';

-- One row a tenant: the lock that acts take which could leave it ownerless.
create table tenant_guards (
    tenant_id uuid   not null primary key references tenants (id),
    n         bigint not null
);

create table users (
    tenant_id      uuid             not null,
    id             uuid             not null,
    email          text             not null,
    email_key      text collate "C" not null,
    name           text             not null,
    name_key       text collate "C" not null,
    department     text,
    department_key text collate "C",
    external_id    text collate "C",
    metadata       text             not null, -- a JSON object of strings
    status         text collate "C" not null,
    words          text collate "C" not null, -- " nada nlovelace eada eexample": member letter and word
    last_login_at  bigint           not null, -- 0: never
    created_at     bigint           not null,
    updated_at     bigint           not null,
    version        bigint           not null,
    primary key (tenant_id, id)
);
create unique index users_email on users (tenant_id, email_key);
create unique index users_external_id on users (tenant_id, external_id) where external_id is not null;
create index users_name on users (tenant_id, name_key, id);
create index users_department on users (tenant_id, department_key, id) where department_key is not null;

-- One row for each word of a user, whether of the name, the address or both, kept
-- equal to users.words by the statements that write users.
create table user_words (
    tenant_id uuid             not null,
    word      text collate "C" not null,
    user_id   uuid             not null,
    primary key (tenant_id, word, user_id)
);

create table passwords (
    tenant_id  uuid   not null,
    user_id    uuid   not null,
    hash       text   not null,
    changed_at bigint not null,
    primary key (tenant_id, user_id),
    constraint passwords_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);

-- The one invitation of a user that can be accepted.
create table invitations (
    tenant_id  uuid   not null,
    user_id    uuid   not null,
    hash       bytea  not null,
    created_by uuid,
    created_at bigint not null,
    expires_at bigint not null,
    primary key (tenant_id, user_id),
    constraint invitations_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create unique index invitations_hash on invitations (tenant_id, hash);
create index invitations_expiry on invitations (tenant_id, expires_at);

-- What is left of a deleted user, for a restore.
create table tombstones (
    tenant_id  uuid   not null,
    user_id    uuid   not null,
    deleted_at bigint not null,
    content    text   not null, -- the user and the assignments as JSON
    primary key (tenant_id, user_id)
);
create index tombstones_deleted on tombstones (tenant_id, deleted_at);

create table roles (
    tenant_id   uuid             not null,
    id          uuid             not null,
    "key"       text collate "C",
    name        text             not null,
    name_key    text collate "C" not null,
    words       text collate "C" not null, -- " support agent"
    description text             not null,
    permissions text             not null, -- a JSON array of strings
    grants      text             not null,
    system      bigint           not null, -- 0 or 1
    created_at  bigint           not null,
    updated_at  bigint           not null,
    version     bigint           not null,
    primary key (tenant_id, id)
);
create unique index roles_name on roles (tenant_id, name_key);
create unique index roles_key on roles (tenant_id, "key") where "key" is not null;

create table assignments (
    tenant_id   uuid   not null,
    user_id     uuid   not null,
    role_id     uuid   not null,
    departments text,            -- a JSON array of names; null: everywhere
    expires_at  bigint not null, -- never: the largest integer
    granted_by  uuid,            -- null: an operator
    granted_at  bigint not null,
    primary key (tenant_id, user_id, role_id),
    constraint assignments_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint assignments_role foreign key (tenant_id, role_id) references roles (tenant_id, id) on delete cascade
);
create index assignments_role on assignments (tenant_id, role_id, user_id);

create table sessions (
    tenant_id        uuid   not null,
    id               uuid   not null,
    user_id          uuid   not null,
    generation       bigint not null, -- the newest that was presented
    authenticated_at bigint not null,
    last_used_at     bigint not null,
    expires_at       bigint not null,
    source           text   not null,
    primary key (tenant_id, id),
    constraint sessions_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index sessions_user on sessions (tenant_id, user_id, id);
create index sessions_expiry on sessions (tenant_id, expires_at);

create table session_tokens (
    tenant_id  uuid   not null,
    hash       bytea  not null,
    session_id uuid   not null,
    generation bigint not null,
    retired_at bigint not null, -- when its successor was first presented
    sealed     bytea,           -- its successor, under a key derived from this token
    primary key (tenant_id, hash),
    foreign key (tenant_id, session_id) references sessions (tenant_id, id) on delete cascade
);
create unique index session_tokens_generation on session_tokens (tenant_id, session_id, generation);

create table idempotency_keys (
    tenant_id   uuid             not null,
    user_id     uuid             not null,
    operation   text collate "C" not null,
    hash        bytea            not null,
    fingerprint bytea            not null,
    expires_at  bigint           not null,
    status      bigint           not null,
    location    text             not null,
    resource_id uuid             not null,
    resource    text,                      -- JSON; null once erased
    primary key (tenant_id, user_id, operation, hash)
);
create index idempotency_keys_resource on idempotency_keys (tenant_id, resource_id);
create index idempotency_keys_expiry on idempotency_keys (tenant_id, expires_at);

create table events (
    tenant_id    uuid             not null,
    id           uuid             not null,
    type         text collate "C" not null,
    occurred_at  bigint           not null,
    actor_type   text collate "C" not null,
    actor_id     uuid,
    actor_via    text             not null,
    subject_type text collate "C" not null,
    subject_id   uuid             not null,
    members      text             not null, -- a JSON array of names
    request_id   text             not null,
    session_id   uuid,
    source       text             not null,
    reason       text             not null,
    before       text,                      -- JSON; what it says is erased with the person
    after        text,
    primary key (tenant_id, id)
);
create index events_subject on events (tenant_id, subject_id, id);

-- Counters of sign-in attempts. They belong to no tenant, so that an unknown
-- tenant costs the same writes; a key is a keyed hash that holds the tenant.
create table attempts (
    bucket  bytea  not null primary key,
    n       bigint not null,
    ends_at bigint not null
);
create index attempts_end on attempts (ends_at);

-- Forced, because the service usually owns its tables, and an owner is exempt
-- otherwise. After a transaction the setting is '', before the first it is null:
-- both compare to nothing, so without a tenant there are no rows.
-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array[
        'tenant_guards', 'users', 'user_words', 'passwords', 'invitations', 'tombstones', 'roles', 'assignments', 'sessions',
        'session_tokens', 'idempotency_keys', 'events']
    loop
        execute format('alter table %I enable row level security', tenant_table);
        execute format('alter table %I force row level security', tenant_table);
        execute format($policy$
            create policy tenant_isolation on %I
            using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            $policy$, tenant_table);
    end loop;
end
$$;
-- +goose StatementEnd
