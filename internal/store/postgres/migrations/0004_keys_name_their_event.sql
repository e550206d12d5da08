-- +goose Up
-- What a request created is in the event of the creation. A key names the event and has no
-- copy. An older program would take what was created to be erased. A copy whose event is not
-- found by its subject stays until the key expires.
alter table idempotency_keys add column event_id uuid;
drop index idempotency_keys_resource;
-- Row security shows the rows of one tenant at a time.
-- +goose StatementBegin
do $$
declare
    one uuid;
begin
    for one in select id from tenants loop
        perform set_config('rolecall.tenant', one::text, true);
        update idempotency_keys k set resource = null, event_id = e.id
            from events e
            where k.tenant_id = one and e.tenant_id = one and e.subject_id = k.resource_id and e.after = k.resource;
    end loop;
    perform set_config('rolecall.tenant', '', true);
end
$$;
-- +goose StatementEnd
insert into compatibility (migration, oldest) values (4, 4);
