-- +goose Up
-- Directories of identity providers, which provision users and groups over SCIM 2.0.
create table directories (
    tenant_id      uuid    not null,
    id             uuid    not null,
    name           text    not null,
    name_key       text collate "C" not null,
    matching       text collate "C" not null,
    deprovisioning text collate "C" not null,
    paused         bigint  not null, -- 0 or 1
    created_at     bigint  not null,
    updated_at     bigint  not null,
    version        bigint  not null,
    deletion       uuid,             -- the event of the deletion, while users are still to be released; null: not deleted
    primary key (tenant_id, id)
);
create unique index directories_name on directories (tenant_id, name_key);
create index directories_deletion on directories (tenant_id, deletion) where deletion is not null;

create table directory_tokens (
    tenant_id    uuid    not null,
    id           uuid    not null,
    directory_id uuid    not null,
    hash         bytea   not null,
    name         text    not null,
    created_by   uuid,             -- null: an operator
    created_at   bigint  not null,
    expires_at   bigint  not null,
    last_used_at bigint  not null, -- 0: never
    warned       bigint  not null, -- 1: the owners got a mail that the token expires soon
    primary key (tenant_id, id)
);
create unique index directory_tokens_hash on directory_tokens (tenant_id, hash);
create index directory_tokens_directory on directory_tokens (tenant_id, directory_id, id);
create index directory_tokens_expiry on directory_tokens (tenant_id, expires_at);

-- The users of directories, with the data that the directory has sent.
create table directory_users (
    tenant_id      uuid    not null,
    user_id        uuid    not null,
    directory_id   uuid    not null,
    removed        bigint  not null, -- 1: the directory has removed the user
    user_name_key  text collate "C", -- null: removed
    external_id    text collate "C",
    work_email_key text collate "C", -- of the primary address, or that of the type work
    active         bigint  not null, -- 1: the directory wants the user to be active
    suspended      bigint  not null, -- 1: the directory has suspended the user
    attributes     text    not null, -- JSON, as the directory has sent them
    primary key (tenant_id, user_id)
);
create unique index directory_users_name on directory_users (tenant_id, directory_id, user_name_key) where user_name_key is not null;
create index directory_users_directory on directory_users (tenant_id, directory_id, removed, user_id);
create index directory_users_external_id on directory_users (tenant_id, directory_id, external_id, user_id) where external_id is not null;
create index directory_users_work_email on directory_users (tenant_id, directory_id, work_email_key, user_id) where work_email_key is not null;

-- The last requests of each directory.
create table directory_requests (
    tenant_id    uuid    not null,
    directory_id uuid    not null,
    n            bigint  not null,
    at           bigint  not null,
    method       text    not null,
    path         text    not null,
    status       bigint  not null,
    detail       text    not null,
    primary key (tenant_id, directory_id, n)
);

alter table users add column managed_by uuid;       -- the directory of the user
alter table groups add column source text collate "C" not null default ''; -- such as directory:<id>; empty: none
drop index groups_name;
drop index groups_external_id;
create index groups_name on groups (tenant_id, name_key, id);
create unique index groups_source_name on groups (tenant_id, source, name_key);
create unique index groups_external_id on groups (tenant_id, external_id, source) where external_id is not null;
alter table connections add column groups text not null default 'null'; -- JSON: how the claims of the provider fill groups

-- An older program would change users and groups that a directory manages.
insert into compatibility (migration, oldest) values (23, 23);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['directories', 'directory_tokens', 'directory_users', 'directory_requests']
    loop
        if exists (select from pg_extension where extname = 'citus') then
            if exists (select from pg_dist_partition where logicalrelid = 'users'::regclass) then
                perform create_distributed_table(tenant_table, 'tenant_id', colocate_with => 'users');
            end if;
        end if;
    end loop;
end
$$;
-- +goose StatementEnd

alter table directory_tokens add constraint directory_tokens_directory
    foreign key (tenant_id, directory_id) references directories (tenant_id, id) on delete cascade;
alter table directory_users add constraint directory_users_user
    foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade;
alter table directory_users add constraint directory_users_directory
    foreign key (tenant_id, directory_id) references directories (tenant_id, id) on delete cascade;
alter table directory_requests add constraint directory_requests_directory
    foreign key (tenant_id, directory_id) references directories (tenant_id, id) on delete cascade;

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['directories', 'directory_tokens', 'directory_users', 'directory_requests']
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
