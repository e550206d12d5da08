-- +goose Up
-- What the life of an account needs beside the account: second factors, tokens that
-- are good once, mail that waits, machines and operators.

-- An older program would let people in without the factor that is demanded.
insert into compatibility (migration, oldest) values (2, 2);

alter table sessions add column confirmed_at bigint not null default 0; -- the last confirmation after the sign-in
alter table sessions add column client text not null default ''; -- in words, as the browser calls itself
alter table sessions add column second_factor bigint not null default 0; -- 0 or 1

-- Good once, for one purpose. Without a user it is a decoy: a request for an address
-- that nobody has writes the same.
create table one_time_tokens (
    tenant_id  uuid             not null,
    hash       bytea            not null,
    purpose    text collate "C" not null,
    user_id    uuid,
    data       text             not null, -- what the purpose needs
    created_at bigint           not null,
    expires_at bigint           not null,
    primary key (tenant_id, hash)
);
create index one_time_tokens_user on one_time_tokens (tenant_id, user_id, purpose);
create index one_time_tokens_expiry on one_time_tokens (tenant_id, expires_at);

create table totp (
    tenant_id    uuid   not null,
    user_id      uuid   not null,
    sealed       bytea,           -- the shared secret, under the keys of the instance
    pending      bytea,           -- one that takes its place once it is confirmed
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

-- A token speaks for a user or for a service account.
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

-- Mail that waits to be sent. It belongs to no tenant, as one sender looks for what
-- is due in all of them; whom it is for and what it says is sealed.
create table outbox (
    id         uuid   not null primary key,
    tenant     uuid   not null,
    user_id    uuid,            -- whom it is about; null: nobody
    sealed     bytea  not null,
    due_at     bigint not null,
    attempts   bigint not null,
    created_at bigint not null,
    expires_at bigint not null
);
create index outbox_due on outbox (due_at);
create index outbox_tenant on outbox (tenant, user_id);
create index outbox_expiry on outbox (expires_at);

-- Deleted users are listed by the ids of their tombstones, which are in order of
-- deletion, and shown by the department that they had: of those who were deleted
-- before this, only where everybody is. The policy holds the owner too, who sees no
-- rows here.
alter table tombstones add column id uuid;
alter table tombstones add column department text;
alter table tombstones add column department_key text collate "C";
alter table tombstones no force row level security;
update tombstones set id = user_id;
alter table tombstones force row level security;
alter table tombstones alter column id set not null;
create unique index tombstones_id on tombstones (tenant_id, id);

-- Of whom nothing may be left. What events say of them goes in steps, and once more
-- from due_at on, when nothing that was under way can write about them any more.
create table erasures (
    tenant_id uuid   not null,
    user_id   uuid   not null,
    due_at    bigint not null,
    seen      uuid,            -- the last event that was gone through; null: none
    primary key (tenant_id, user_id)
);
create index erasures_due on erasures (tenant_id, due_at);

-- Keys of operators, and the idempotency keys of what they made.
create table operator_keys (
    id           uuid             not null primary key,
    hash         bytea            not null,
    name         text             not null,
    tenants      text,                      -- a JSON array of names; null: all
    created_at   bigint           not null,
    expires_at   bigint           not null,
    last_used_at bigint           not null  -- 0: never
);
create unique index operator_keys_hash on operator_keys (hash);

create table operator_requests (
    key_id      uuid             not null,
    operation   text collate "C" not null,
    hash        bytea            not null,
    fingerprint bytea            not null,
    expires_at  bigint           not null,
    status      bigint           not null,
    location    text             not null,
    resource_id uuid             not null,
    resource    text,                      -- JSON
    primary key (key_id, operation, hash)
);
create index operator_requests_expiry on operator_requests (expires_at);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array[
        'one_time_tokens', 'erasures', 'totp', 'recovery_codes', 'passkeys', 'service_accounts', 'service_account_roles', 'api_tokens']
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
