-- +goose Up
-- Times are microseconds since 1970; "never" is 9223372036854775807. Ids are UUIDs of 16
-- bytes. Columns whose names end in _key are folded in Go. Every key of a tenant's table
-- begins with tenant_id.

-- The oldest program that each migration serves: one that knows at least migration
-- "oldest". Every migration adds its row.
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
    restores_to  text,             -- the status that a restore brings back; null: not deleted, or the purge has begun
    settings     text    not null,
    created_at   integer not null,
    updated_at   integer not null,
    version      integer not null
) strict, without rowid;
-- A deleted tenant keeps its row and its name until it is purged and 30 days have passed.
-- Its updated_at is when it is purged.
create unique index tenants_name on tenants (name);
create index tenants_deleted on tenants (updated_at) where status = 'deleted';

-- One row for each tenant: the lock of changes that could leave the tenant without an owner.
create table tenant_guards (
    tenant_id blob    not null primary key references tenants (id),
    n         integer not null
) strict, without rowid;

-- Keys of operators.
create table operator_keys (
    id           blob    not null primary key,
    hash         blob    not null,
    name         text    not null,
    tenants      text,             -- a JSON array of names; null: all
    created_at   integer not null,
    expires_at   integer not null,
    last_used_at integer not null  -- 0: never
) strict, without rowid;
create unique index operator_keys_hash on operator_keys (hash);

-- Idempotency keys of operators.
create table operator_requests (
    key_id      blob    not null,
    operation   text    not null,
    hash        blob    not null,
    fingerprint blob    not null,
    expires_at  integer not null,
    status      integer not null,
    location    text    not null,
    resource_id blob    not null,
    resource    text, -- JSON
    primary key (key_id, operation, hash)
) strict, without rowid;
create index operator_requests_expiry on operator_requests (expires_at);

-- Counters of sign-in attempts. They belong to no tenant, so that a sign-in to an unknown
-- tenant does the same writes. The bucket is a keyed hash that includes the tenant.
create table attempts (
    bucket  blob    not null primary key,
    n       integer not null,
    ends_at integer not null
) strict, without rowid;
create index attempts_end on attempts (ends_at);

-- Mail to send. It belongs to no tenant, because one sender serves all tenants. The
-- recipient and the content are sealed.
create table outbox (
    id         blob    not null primary key,
    tenant     blob    not null,
    user_id    blob, -- the user that it is about; null: none
    sealed     blob    not null,
    due_at     integer not null,
    attempts   integer not null,
    created_at integer not null,
    expires_at integer not null
) strict, without rowid;
create index outbox_due on outbox (due_at);
create index outbox_tenant on outbox (tenant, user_id);
create index outbox_expiry on outbox (expires_at);

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

-- One row for each word of a user's name or address. The statements that write users keep
-- it equal to users.words.
create table user_words (
    tenant_id blob not null,
    word      text not null,
    user_id   blob not null,
    primary key (tenant_id, word, user_id)
) strict, without rowid;

-- Deleted users, for a restore. They are listed by id, in order of deletion.
create table tombstones (
    tenant_id      blob    not null,
    user_id        blob    not null,
    id             blob    not null,
    deleted_at     integer not null,
    department     text,
    department_key text,
    content        text    not null, -- the user and the assignments as JSON
    primary key (tenant_id, user_id)
) strict, without rowid;
create index tombstones_deleted on tombstones (tenant_id, deleted_at);
create unique index tombstones_id on tombstones (tenant_id, id);

-- Users whose traces are being erased. It is done in steps, and again from due_at on, when no
-- request that was in progress can write about the user any more.
create table erasures (
    tenant_id blob    not null,
    user_id   blob    not null,
    due_at    integer not null,
    seen      blob, -- the last event that was erased; null: none
    primary key (tenant_id, user_id)
) strict, without rowid;
create index erasures_due on erasures (tenant_id, due_at);

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

create table service_accounts (
    tenant_id   blob    not null,
    id          blob    not null,
    name        text    not null,
    name_key    text    not null,
    words       text    not null, -- " nightly import"
    description text    not null,
    status      text    not null,
    created_at  integer not null,
    updated_at  integer not null,
    version     integer not null,
    primary key (tenant_id, id)
) strict, without rowid;
create unique index service_accounts_name on service_accounts (tenant_id, name_key);

create table service_account_roles (
    tenant_id          blob    not null,
    service_account_id blob    not null,
    role_id            blob    not null,
    departments        text,             -- a JSON array of names; null: everywhere
    expires_at         integer not null, -- never: the largest integer
    granted_by         blob,             -- null: an operator
    granted_at         integer not null,
    primary key (tenant_id, service_account_id, role_id),
    constraint service_account_roles_account foreign key (tenant_id, service_account_id) references service_accounts (tenant_id, id) on delete cascade,
    constraint service_account_roles_role foreign key (tenant_id, role_id) references roles (tenant_id, id) on delete cascade
) strict, without rowid;
create index service_account_roles_role on service_account_roles (tenant_id, role_id, service_account_id);

create table passwords (
    tenant_id  blob    not null,
    user_id    blob    not null,
    hash       text    not null,
    changed_at integer not null,
    primary key (tenant_id, user_id),
    constraint passwords_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;

create table totp (
    tenant_id    blob    not null,
    user_id      blob    not null,
    sealed       blob,             -- the shared secret, under the keys of the instance
    pending      blob,             -- the next secret, until it is confirmed
    confirmed_at integer not null,
    last_step    integer not null, -- the newest that was used
    primary key (tenant_id, user_id),
    constraint totp_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;

create table recovery_codes (
    tenant_id blob not null,
    user_id   blob not null,
    hash      blob not null,
    primary key (tenant_id, user_id, hash),
    constraint recovery_codes_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;

create table passkeys (
    tenant_id    blob    not null,
    id           blob    not null, -- the credential's
    user_id      blob    not null,
    name         text    not null,
    credential   text    not null, -- JSON: the public key and what belongs to it
    created_at   integer not null,
    last_used_at integer not null, -- 0: never
    primary key (tenant_id, id),
    constraint passkeys_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;
create index passkeys_user on passkeys (tenant_id, user_id, id);

-- The invitation of a user. A new one replaces it. It ends with the credential that it was
-- requested with.
create table invitations (
    tenant_id    blob    not null,
    user_id      blob    not null,
    hash         blob    not null,
    created_by   blob,
    credential   blob, -- a session or an API token; null: neither
    operator_key blob,
    created_at   integer not null,
    expires_at   integer not null,
    primary key (tenant_id, user_id),
    constraint invitations_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index invitations_hash on invitations (tenant_id, hash);
create index invitations_expiry on invitations (tenant_id, expires_at);
create index invitations_credential on invitations (tenant_id, credential) where credential is not null;

-- Tokens that can be used once, for one purpose. A request for an unknown address writes a
-- dummy without a user, so that it does the same work. A token ends with the credential
-- that it was requested with.
create table one_time_tokens (
    tenant_id    blob    not null,
    hash         blob    not null,
    purpose      text    not null,
    user_id      blob,
    data         text    not null, -- what the purpose needs
    credential   blob,             -- a session or an API token; null: neither
    operator_key blob,
    created_at   integer not null,
    expires_at   integer not null,
    primary key (tenant_id, hash)
) strict, without rowid;
create index one_time_tokens_user on one_time_tokens (tenant_id, user_id, purpose);
create index one_time_tokens_expiry on one_time_tokens (tenant_id, expires_at);
create index one_time_tokens_credential on one_time_tokens (tenant_id, credential) where credential is not null;

create table sessions (
    tenant_id        blob    not null,
    id               blob    not null,
    user_id          blob    not null,
    generation       integer not null, -- the newest that was presented
    authenticated_at integer not null,
    confirmed_at     integer not null, -- the last re-authentication; 0: none since the sign-in
    last_used_at     integer not null,
    expires_at       integer not null,
    source           text    not null,
    client           text    not null, -- such as "Firefox on Windows"
    second_factor    integer not null, -- 0 or 1
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

-- A token belongs to a user or to a service account.
create table api_tokens (
    tenant_id          blob    not null,
    id                 blob    not null,
    user_id            blob,
    service_account_id blob,
    hash               blob    not null,
    name               text    not null,
    permissions        text    not null, -- a JSON array of strings
    created_by         blob,             -- null: an operator
    created_at         integer not null,
    expires_at         integer not null,
    last_used_at       integer not null, -- 0: never
    primary key (tenant_id, id),
    constraint api_tokens_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint api_tokens_service_account foreign key (tenant_id, service_account_id) references service_accounts (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index api_tokens_hash on api_tokens (tenant_id, hash);
create index api_tokens_user on api_tokens (tenant_id, user_id, id);
create index api_tokens_service_account on api_tokens (tenant_id, service_account_id, id);
create index api_tokens_expiry on api_tokens (tenant_id, expires_at);

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
    resource    text, -- JSON; null once erased
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
    actor_token  blob,             -- the API token; null: none
    subject_type text    not null,
    subject_id   blob    not null,
    members      text    not null, -- a JSON array of names
    request_id   text    not null,
    session_id   blob,
    source       text    not null,
    reason       text    not null,
    before       text,             -- JSON; its values are erased with the person
    after        text,
    primary key (tenant_id, id)
) strict, without rowid;
create index events_subject on events (tenant_id, subject_id, id);
-- What a user did to others, until the source address is erased.
create index events_acts on events (tenant_id, actor_id, id) where actor_id <> subject_id and source <> '';

-- Statistics that tell the planner that a tenant has many rows. Without them it assumes ten,
-- and reads a whole tenant instead of a few rows by an index. They are the same in every
-- file, so that the plans are the same too.
analyze compatibility; -- creates sqlite_stat1
delete from sqlite_stat1;
insert into sqlite_stat1 (tbl, idx, stat)
select t.name, case when i.origin = 'pk' then t.name else i.name end,
    '1000000' || case count(*) when 1 then '' else ' 10000' || replace(hex(zeroblob(count(*) - 2)), '00', ' 10') end || ' 1'
from sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
where t.type = 'table' and exists (select 1 from pragma_index_info(i.name) f where f.seqno = 0 and f.name = 'tenant_id')
group by t.name, i.name, i.origin;
analyze sqlite_schema; -- reads them
