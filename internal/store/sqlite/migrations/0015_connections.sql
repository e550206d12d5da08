-- +goose Up
-- Identity providers (OpenID Connect) with which the users of a tenant can sign in.
create table connections (
    tenant_id      blob    not null,
    id             blob    not null,
    name           text    not null,
    name_key       text    not null,
    issuer         text    not null,
    client_id      text    not null,
    secret         blob    not null, -- encrypted
    domains        text    not null, -- a JSON array
    linking        text    not null,
    provisioning   text    not null, -- JSON; null: the connection creates no users
    provisioned_by blob,             -- who last set the provisioning; null: an operator
    second_factor  text    not null,
    acr_values     text    not null, -- a JSON array
    amr_values     text    not null, -- a JSON array
    created_at     integer not null,
    updated_at     integer not null,
    version        integer not null,
    primary key (tenant_id, id)
) strict, without rowid;
create unique index connections_name on connections (tenant_id, name_key);
create unique index connections_issuer on connections (tenant_id, issuer);

-- The accounts at identity providers with which users can sign in.
create table identities (
    tenant_id     blob    not null,
    id            blob    not null,
    user_id       blob    not null,
    connection_id blob    not null,
    issuer        text    not null,
    subject       text    not null,
    email         text    not null, -- as the provider sent it
    created_at    integer not null,
    last_used_at  integer not null, -- 0: never
    primary key (tenant_id, id),
    constraint identities_user foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
    constraint identities_connection foreign key (tenant_id, connection_id) references connections (tenant_id, id) on delete cascade
) strict, without rowid;
create unique index identities_subject on identities (tenant_id, issuer, subject);
create index identities_user on identities (tenant_id, user_id, id);
create index identities_connection on identities (tenant_id, connection_id);

-- The identity with which a session began. An older program does not set it.
alter table sessions add column identity_id blob;
alter table sessions add column connection_id blob;
create index sessions_connection on sessions (tenant_id, connection_id) where connection_id is not null;
insert into compatibility (migration, oldest) values (15, 4);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('connections', 'connections', '20000 20 1'), ('connections', 'connections_name', '20000 20 1'), ('connections', 'connections_issuer', '20000 20 1'),
    ('identities', 'identities', '1000000 10000 1'), ('identities', 'identities_subject', '1000000 10000 1000 1'),
    ('identities', 'identities_user', '1000000 10000 2 1'), ('identities', 'identities_connection', '1000000 10000 1000'),
    ('sessions', 'sessions_connection', '100000 10000 1000');
analyze sqlite_schema; -- reads the figures
