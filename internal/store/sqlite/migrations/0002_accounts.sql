-- +goose Up
-- What the life of an account needs beside the account: second factors, tokens that
-- are good once, mail that waits, machines and operators.

-- An older program would let people in without the factor that is demanded.
insert into compatibility (migration, oldest) values (2, 2);

alter table sessions add column confirmed_at integer not null default 0; -- the last confirmation after the sign-in
alter table sessions add column client text not null default ''; -- in words, as the browser calls itself
alter table sessions add column second_factor integer not null default 0; -- 0 or 1

-- Good once, for one purpose. Without a user it is a decoy: a request for an address
-- that nobody has writes the same.
create table one_time_tokens (
    tenant_id  blob    not null,
    hash       blob    not null,
    purpose    text    not null,
    user_id    blob,
    data       text    not null, -- what the purpose needs
    created_at integer not null,
    expires_at integer not null,
    primary key (tenant_id, hash)
) strict, without rowid;
create index one_time_tokens_user on one_time_tokens (tenant_id, user_id, purpose);
create index one_time_tokens_expiry on one_time_tokens (tenant_id, expires_at);

create table totp (
    tenant_id    blob    not null,
    user_id      blob    not null,
    sealed       blob,             -- the shared secret, under the keys of the instance
    pending      blob,             -- one that takes its place once it is confirmed
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

-- A token speaks for a user or for a service account.
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

-- Mail that waits to be sent. It belongs to no tenant, as one sender looks for what
-- is due in all of them; whom it is for and what it says is sealed.
create table outbox (
    id         blob    not null primary key,
    tenant     blob    not null,
    user_id    blob,             -- whom it is about; null: nobody
    sealed     blob    not null,
    due_at     integer not null,
    attempts   integer not null,
    created_at integer not null,
    expires_at integer not null
) strict, without rowid;
create index outbox_due on outbox (due_at);
create index outbox_tenant on outbox (tenant, user_id);
create index outbox_expiry on outbox (expires_at);

-- Deleted users are listed by the ids of their tombstones, which are in order of
-- deletion, and shown by the department that they had: of those who were deleted
-- before this, only where everybody is.
create table tombstones_with_ids (
    tenant_id      blob    not null,
    user_id        blob    not null,
    id             blob    not null,
    deleted_at     integer not null,
    department     text,
    department_key text,
    content        text    not null, -- the user and the assignments as JSON
    primary key (tenant_id, user_id)
) strict, without rowid;
insert into tombstones_with_ids (tenant_id, user_id, id, deleted_at, content)
    select tenant_id, user_id, user_id, deleted_at, content from tombstones;
drop table tombstones;
alter table tombstones_with_ids rename to tombstones;
create index tombstones_deleted on tombstones (tenant_id, deleted_at);
create unique index tombstones_id on tombstones (tenant_id, id);

-- Of whom nothing may be left. What events say of them goes in steps, and once more
-- from due_at on, when nothing that was under way can write about them any more.
create table erasures (
    tenant_id blob    not null,
    user_id   blob    not null,
    due_at    integer not null,
    seen      blob,            -- the last event that was gone through; null: none
    primary key (tenant_id, user_id)
) strict, without rowid;
create index erasures_due on erasures (tenant_id, due_at);

-- Keys of operators, and the idempotency keys of what they made.
create table operator_keys (
    id           blob    not null primary key,
    hash         blob    not null,
    name         text    not null,
    tenants      text,            -- a JSON array of names; null: all
    created_at   integer not null,
    expires_at   integer not null,
    last_used_at integer not null -- 0: never
) strict, without rowid;
create unique index operator_keys_hash on operator_keys (hash);

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

-- Figures that tell the planner that a tenant has many rows. Without them it takes
-- ten to be all, and reads a whole tenant rather than look a few rows up by an index.
-- They are the same in every file, whatever it holds, so that plans are the same too.
analyze compatibility; -- makes the table of figures
delete from sqlite_stat1;
insert into sqlite_stat1 (tbl, idx, stat)
select t.name, case when i.origin = 'pk' then t.name else i.name end,
    '1000000' || case count(*) when 1 then '' else ' 10000' || replace(hex(zeroblob(count(*) - 2)), '00', ' 10') end || ' 1'
from sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
where t.type = 'table' and exists (select 1 from pragma_index_info(i.name) f where f.seqno = 0 and f.name = 'tenant_id')
group by t.name, i.name, i.origin;
analyze sqlite_schema; -- reads them
