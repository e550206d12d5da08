-- +goose Up
-- Directories of identity providers, which provision users and groups over SCIM 2.0.
create table directories (
    tenant_id      blob    not null,
    id             blob    not null,
    name           text    not null,
    name_key       text    not null,
    matching       text    not null,
    deprovisioning text    not null,
    paused         integer not null, -- 0 or 1
    created_at     integer not null,
    updated_at     integer not null,
    version        integer not null,
    deletion       blob,             -- the event of the deletion, while users are still to be released; null: not deleted
    primary key (tenant_id, id)
) strict, without rowid;
create unique index directories_name on directories (tenant_id, name_key);
create index directories_deletion on directories (tenant_id, deletion) where deletion is not null;

create table directory_tokens (
    tenant_id    blob    not null,
    id           blob    not null,
    directory_id blob    not null,
    hash         blob    not null,
    name         text    not null,
    created_by   blob,             -- null: an operator
    created_at   integer not null,
    expires_at   integer not null,
    last_used_at integer not null, -- 0: never
    warned       integer not null, -- 1: the owners got a mail that the token expires soon
    primary key (tenant_id, id),
    constraint directory_tokens_directory foreign key (tenant_id, directory_id) references directories (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index directory_tokens_hash on directory_tokens (tenant_id, hash);
create index directory_tokens_directory on directory_tokens (tenant_id, directory_id, id);
create index directory_tokens_expiry on directory_tokens (tenant_id, expires_at);

-- The users of directories, with the data that the directory has sent.
create table directory_users (
    tenant_id      blob    not null,
    user_id        blob    not null,
    directory_id   blob    not null,
    removed        integer not null, -- 1: the directory has removed the user
    user_name_key  text,             -- null: removed
    external_id    text,
    work_email_key text,             -- of the primary address, or that of the type work
    active         integer not null, -- 1: the directory wants the user to be active
    suspended      integer not null, -- 1: the directory has suspended the user
    attributes     text    not null, -- JSON, as the directory has sent them
    primary key (tenant_id, user_id),
    constraint directory_users_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint directory_users_directory foreign key (tenant_id, directory_id) references directories (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index directory_users_name on directory_users (tenant_id, directory_id, user_name_key) where user_name_key is not null;
create index directory_users_directory on directory_users (tenant_id, directory_id, removed, user_id);
create index directory_users_external_id on directory_users (tenant_id, directory_id, external_id, user_id) where external_id is not null;
create index directory_users_work_email on directory_users (tenant_id, directory_id, work_email_key, user_id) where work_email_key is not null;

-- The last requests of each directory.
create table directory_requests (
    tenant_id    blob    not null,
    directory_id blob    not null,
    n            integer not null,
    at           integer not null,
    method       text    not null,
    path         text    not null,
    status       integer not null,
    detail       text    not null,
    primary key (tenant_id, directory_id, n),
    constraint directory_requests_directory foreign key (tenant_id, directory_id) references directories (tenant_id, id) on delete cascade
) strict, without rowid;

alter table users add column managed_by blob;       -- the directory of the user
alter table groups add column source text not null default ''; -- such as directory:<id>; empty: none
drop index groups_name;
drop index groups_external_id;
create index groups_name on groups (tenant_id, name_key, id);
create unique index groups_source_name on groups (tenant_id, source, name_key);
create unique index groups_external_id on groups (tenant_id, external_id, source) where external_id is not null;
alter table connections add column groups text not null default 'null'; -- JSON: how the claims of the provider fill groups

-- An older program would change users and groups that a directory manages.
insert into compatibility (migration, oldest) values (23, 23);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('directories', 'directories', '2000 2 1'), ('directories', 'directories_name', '2000 2 1'), ('directories', 'directories_deletion', '10 2 1'),
    ('directory_tokens', 'directory_tokens', '4000 4 1'), ('directory_tokens', 'directory_tokens_hash', '4000 4 1'),
    ('directory_tokens', 'directory_tokens_directory', '4000 4 2 1'), ('directory_tokens', 'directory_tokens_expiry', '4000 4 1'),
    ('directory_users', 'directory_users', '1000000 10000 1'), ('directory_users', 'directory_users_name', '1000000 10000 5000 1'),
    ('directory_users', 'directory_users_directory', '1000000 10000 5000 2500 1'),
    ('directory_users', 'directory_users_external_id', '1000000 10000 5000 2 1'),
    ('directory_users', 'directory_users_work_email', '1000000 10000 5000 2 1'),
    ('directory_requests', 'directory_requests', '100000 100 50 1'),
    ('groups', 'groups_source_name', '100000 1000 500 1');
delete from sqlite_stat1 where idx in ('groups_name', 'groups_external_id');
insert into sqlite_stat1 (tbl, idx, stat) values
    ('groups', 'groups_name', '100000 1000 1 1'), ('groups', 'groups_external_id', '100000 1000 1 1');
analyze sqlite_schema; -- reads the figures
