-- +goose Up
-- A deleted role keeps its row until it is taken from all holders. An older program would
-- still show it.
alter table roles add column deletion blob; -- the event of the deletion; null: not deleted
create index roles_deletion on roles (tenant_id, id) where deletion is not null;
insert into compatibility (migration, oldest) values (2, 2);

insert into sqlite_stat1 (tbl, idx, stat) values ('roles', 'roles_deletion', '1000000 10000 1');
analyze sqlite_schema; -- reads the figures
