-- +goose Up
-- Operators find the tenants of an email address.
create index users_address on users (email_key, tenant_id);
insert into compatibility (migration, oldest) values (16, 4);

insert into sqlite_stat1 (tbl, idx, stat) values ('users', 'users_address', '1000000 2 1');
analyze sqlite_schema; -- reads the figures
