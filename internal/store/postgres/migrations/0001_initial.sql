-- +goose Up
-- Times are microseconds since 1970; "never" is 9223372036854775807. Columns whose names
-- end in _key are folded in Go. Every key of a tenant's table begins with tenant_id, and row
-- security shows only the rows of the tenant in rolecall.tenant. These tables do not refer to
-- tenants, because every insert would then lock the row of its tenant together with all other
-- inserts in progress. Texts that are compared or sorted are collate "C", so that both
-- databases agree.

-- The oldest program that each migration serves: one that knows at least migration
-- "oldest". Every migration adds its row.
create table compatibility (
    migration bigint not null primary key,
    oldest    bigint not null
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
    status       text collate "C" not null, -- active, suspended, deleted, purged
    restores_to  text,                      -- the status that a restore brings back; null: not deleted, or the purge has begun
    settings     text             not null,
    created_at   bigint           not null,
    updated_at   bigint           not null,
    version      bigint           not null
);
-- A deleted tenant keeps its row and its name until it is purged and 30 days have passed.
-- Its updated_at is when it is purged.
create unique index tenants_name on tenants (name);
create index tenants_deleted on tenants (updated_at) where status = 'deleted';

-- One row for each tenant: the lock of changes that could leave the tenant without an owner.
create table tenant_guards (
    tenant_id uuid   not null primary key references tenants (id),
    n         bigint not null
);

-- Keys of operators.
create table operator_keys (
    id           uuid   not null primary key,
    hash         bytea  not null,
    name         text   not null,
    tenants      text,            -- a JSON array of names; null: all
    created_at   bigint not null,
    expires_at   bigint not null,
    last_used_at bigint not null  -- 0: never
);
create unique index operator_keys_hash on operator_keys (hash);

-- Idempotency keys of operators.
create table operator_requests (
    key_id      uuid             not null,
    operation   text collate "C" not null,
    hash        bytea            not null,
    fingerprint bytea            not null,
    expires_at  bigint           not null,
    status      bigint           not null,
    location    text             not null,
    resource_id uuid             not null,
    resource    text, -- JSON
    primary key (key_id, operation, hash)
);
create index operator_requests_expiry on operator_requests (expires_at);

-- Counters of sign-in attempts. They belong to no tenant, so that a sign-in to an unknown
-- tenant does the same writes. The bucket is a keyed hash that includes the tenant.
create table attempts (
    bucket  bytea  not null primary key,
    n       bigint not null,
    ends_at bigint not null
);
create index attempts_end on attempts (ends_at);

-- Mail to send. It belongs to no tenant, because one sender serves all tenants. The
-- recipient and the content are sealed.
create table outbox (
    id         uuid   not null primary key,
    tenant     uuid   not null,
    user_id    uuid, -- the user that it is about; null: none
    sealed     bytea  not null,
    due_at     bigint not null,
    attempts   bigint not null,
    created_at bigint not null,
    expires_at bigint not null
);
create index outbox_due on outbox (due_at);
create index outbox_tenant on outbox (tenant, user_id);
create index outbox_expiry on outbox (expires_at);

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

-- One row for each word of a user's name or address. The statements that write users keep
-- it equal to users.words.
create table user_words (
    tenant_id uuid             not null,
    word      text collate "C" not null,
    user_id   uuid             not null,
    primary key (tenant_id, word, user_id)
);

-- Deleted users, for a restore. They are listed by id, in order of deletion.
create table tombstones (
    tenant_id      uuid             not null,
    user_id        uuid             not null,
    id             uuid             not null,
    deleted_at     bigint           not null,
    department     text,
    department_key text collate "C",
    content        text             not null, -- the user and the assignments as JSON
    primary key (tenant_id, user_id)
);
create index tombstones_deleted on tombstones (tenant_id, deleted_at);
create unique index tombstones_id on tombstones (tenant_id, id);

-- Users whose traces are being erased. It is done in steps, and again from due_at on, when no
-- request that was in progress can write about the user any more.
create table erasures (
    tenant_id uuid   not null,
    user_id   uuid   not null,
    due_at    bigint not null,
    seen      uuid, -- the last event that was erased; null: none
    primary key (tenant_id, user_id)
);
create index erasures_due on erasures (tenant_id, due_at);

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

create table service_accounts (
    tenant_id   uuid             not null,
    id          uuid             not null,
    name        text             not null,
    name_key    text collate "C" not null,
    words       text collate "C" not null, -- " nightly import"
    description text             not null,
    status      text collate "C" not null,
    created_at  bigint           not null,
    updated_at  bigint           not null,
    version     bigint           not null,
    primary key (tenant_id, id)
);
create unique index service_accounts_name on service_accounts (tenant_id, name_key);

create table service_account_roles (
    tenant_id          uuid   not null,
    service_account_id uuid   not null,
    role_id            uuid   not null,
    departments        text,            -- a JSON array of names; null: everywhere
    expires_at         bigint not null, -- never: the largest integer
    granted_by         uuid,            -- null: an operator
    granted_at         bigint not null,
    primary key (tenant_id, service_account_id, role_id),
    constraint service_account_roles_account foreign key (tenant_id, service_account_id) references service_accounts (tenant_id, id) on delete cascade,
    constraint service_account_roles_role foreign key (tenant_id, role_id) references roles (tenant_id, id) on delete cascade
);
create index service_account_roles_role on service_account_roles (tenant_id, role_id, service_account_id);

create table passwords (
    tenant_id  uuid   not null,
    user_id    uuid   not null,
    hash       text   not null,
    changed_at bigint not null,
    primary key (tenant_id, user_id),
    constraint passwords_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);

create table totp (
    tenant_id    uuid   not null,
    user_id      uuid   not null,
    sealed       bytea,           -- the shared secret, under the keys of the instance
    pending      bytea,           -- the next secret, until it is confirmed
    confirmed_at bigint not null,
    last_step    bigint not null, -- the newest that was used
    primary key (tenant_id, user_id),
    constraint totp_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);

create table recovery_codes (
    tenant_id uuid  not null,
    user_id   uuid  not null,
    hash      bytea not null,
    primary key (tenant_id, user_id, hash),
    constraint recovery_codes_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);

create table passkeys (
    tenant_id    uuid   not null,
    id           bytea  not null, -- the credential's
    user_id      uuid   not null,
    name         text   not null,
    credential   text   not null, -- JSON: the public key and what belongs to it
    created_at   bigint not null,
    last_used_at bigint not null, -- 0: never
    primary key (tenant_id, id),
    constraint passkeys_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create index passkeys_user on passkeys (tenant_id, user_id, id);

-- The invitation of a user. A new one replaces it. It ends with the credential that it was
-- requested with.
create table invitations (
    tenant_id    uuid   not null,
    user_id      uuid   not null,
    hash         bytea  not null,
    created_by   uuid,
    credential   uuid, -- a session or an API token; null: neither
    operator_key uuid,
    created_at   bigint not null,
    expires_at   bigint not null,
    primary key (tenant_id, user_id),
    constraint invitations_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
create unique index invitations_hash on invitations (tenant_id, hash);
create index invitations_expiry on invitations (tenant_id, expires_at);
create index invitations_credential on invitations (tenant_id, credential) where credential is not null;

-- Tokens that can be used once, for one purpose. A request for an unknown address writes a
-- dummy without a user, so that it does the same work. A token ends with the credential
-- that it was requested with.
create table one_time_tokens (
    tenant_id    uuid             not null,
    hash         bytea            not null,
    purpose      text collate "C" not null,
    user_id      uuid,
    data         text             not null, -- what the purpose needs
    credential   uuid,                      -- a session or an API token; null: neither
    operator_key uuid,
    created_at   bigint           not null,
    expires_at   bigint           not null,
    primary key (tenant_id, hash)
);
create index one_time_tokens_user on one_time_tokens (tenant_id, user_id, purpose);
create index one_time_tokens_expiry on one_time_tokens (tenant_id, expires_at);
create index one_time_tokens_credential on one_time_tokens (tenant_id, credential) where credential is not null;

create table sessions (
    tenant_id        uuid   not null,
    id               uuid   not null,
    user_id          uuid   not null,
    generation       bigint not null, -- the newest that was presented
    authenticated_at bigint not null,
    confirmed_at     bigint not null, -- the last re-authentication; 0: none since the sign-in
    last_used_at     bigint not null,
    expires_at       bigint not null,
    source           text   not null,
    client           text   not null, -- such as "Firefox on Windows"
    second_factor    bigint not null, -- 0 or 1
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

-- A token belongs to a user or to a service account.
create table api_tokens (
    tenant_id          uuid   not null,
    id                 uuid   not null,
    user_id            uuid,
    service_account_id uuid,
    hash               bytea  not null,
    name               text   not null,
    permissions        text   not null, -- a JSON array of strings
    created_by         uuid,            -- null: an operator
    created_at         bigint not null,
    expires_at         bigint not null,
    last_used_at       bigint not null, -- 0: never
    primary key (tenant_id, id),
    constraint api_tokens_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint api_tokens_service_account foreign key (tenant_id, service_account_id) references service_accounts (tenant_id, id) on delete cascade
);
create unique index api_tokens_hash on api_tokens (tenant_id, hash);
create index api_tokens_user on api_tokens (tenant_id, user_id, id);
create index api_tokens_service_account on api_tokens (tenant_id, service_account_id, id);
create index api_tokens_expiry on api_tokens (tenant_id, expires_at);

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
    resource    text, -- JSON; null once erased
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
    actor_token  uuid,                      -- the API token; null: none
    subject_type text collate "C" not null,
    subject_id   uuid             not null,
    members      text             not null, -- a JSON array of names
    request_id   text             not null,
    session_id   uuid,
    source       text             not null,
    reason       text             not null,
    before       text,                      -- JSON; its values are erased with the person
    after        text,
    primary key (tenant_id, id)
);
create index events_subject on events (tenant_id, subject_id, id);
-- What a user did to others, until the source address is erased.
create index events_acts on events (tenant_id, actor_id, id) where actor_id <> subject_id and source <> '';

-- Row security is forced, because the service usually owns its tables, and owners are exempt
-- otherwise. The setting is null before the first transaction of a connection, and '' after
-- one. Neither equals an id, so without a tenant no row is visible.
-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array[
        'tenant_guards', 'users', 'user_words', 'tombstones', 'erasures', 'roles',
        'assignments', 'service_accounts', 'service_account_roles', 'passwords', 'totp', 'recovery_codes',
        'passkeys', 'invitations', 'one_time_tokens', 'sessions', 'session_tokens', 'api_tokens',
        'idempotency_keys', 'events']
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
