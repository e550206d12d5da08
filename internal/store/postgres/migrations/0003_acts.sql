-- +goose Up
insert into compatibility (migration, oldest) values (3, 2);

-- What a person did to others, as long as it holds the address that they did it from.
create index events_acts on events (tenant_id, actor_id, id) where actor_id <> subject_id and source <> '';

-- An older program writes events without the token, and reads none.
alter table events add column actor_token uuid; -- the API token by which somebody acted; null: none
