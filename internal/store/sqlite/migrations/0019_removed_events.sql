-- +goose Up
-- The leaf of the last event that was deleted because of its age. Its hash is in the tiles, so it proves how old the
-- deleted events were. Null: no event was deleted, or an older program deleted it.
alter table logs add column removed_leaf blob;
insert into compatibility (migration, oldest) values (19, 4);
