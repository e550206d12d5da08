-- +goose Up
-- What a request created is in the event of the creation. A key names the event and has no
-- copy. An older program would take what was created to be erased. A copy whose event is not
-- found by its subject stays until the key expires.
alter table idempotency_keys add column event_id blob;
drop index idempotency_keys_resource;
update idempotency_keys set resource = null, event_id = e.id
    from events e
    where e.tenant_id = idempotency_keys.tenant_id and e.subject_id = idempotency_keys.resource_id
        and e.after = idempotency_keys.resource;
insert into compatibility (migration, oldest) values (4, 4);
