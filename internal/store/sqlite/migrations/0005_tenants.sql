-- +goose Up
-- A deleted tenant can be restored for a day. Its updated_at is when it is purged, so
-- that an older program does not purge it earlier. A tenant that an older program
-- deletes is purged within minutes and cannot be restored.
insert into compatibility (migration, oldest) values (5, 2);

alter table tenants add column restores_to text; -- the status that a restore brings back; null: not deleted, or cannot be restored
