-- +goose Up
-- The logo of a tenant. Its description is in the row of the tenant, which each node caches.
-- The image is in another table, because only the pages before the sign-in read it.
alter table tenants add column logo text not null default 'null'; -- JSON; null: the tenant has no logo
create table tenant_logos (
    tenant_id  blob not null primary key,
    media_type text not null,
    content    blob not null
) strict, without rowid;
insert into compatibility (migration, oldest) values (8, 4);

insert into sqlite_stat1 (tbl, idx, stat) values ('tenant_logos', 'tenant_logos', '10000 1');
analyze sqlite_schema; -- reads the figures
