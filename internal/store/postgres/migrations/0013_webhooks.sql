-- +goose Up
-- Webhooks send the items of the change feed to endpoints of the tenant. An older program does not send
-- them, and does not wake the parts that follow the feed: these look for changes every minute.
create table webhooks (
    tenant_id          uuid not null,
    id                 uuid not null,
    url                text not null,
    types              text not null, -- a JSON array; empty for all types
    service_account_id uuid not null, -- may have been deleted
    ignore_actors      text not null, -- a JSON array
    enabled            bigint not null,
    disabled_reason    text collate "C", -- why Rolecall disabled it
    secret             bytea not null, -- encrypted
    old_secret         bytea, -- encrypted; the secret before the last rotation
    old_until          bigint not null,
    created_at         bigint not null,
    updated_at         bigint not null,
    version            bigint not null,
    primary key (tenant_id, id)
);

-- The newest attempts of each webhook. A new attempt takes the place of an old one.
create table webhook_deliveries (
    tenant_id   uuid not null,
    webhook_id  uuid not null,
    slot        bigint not null,
    id          uuid not null,
    item_id     uuid not null,
    type        text collate "C" not null,
    attempt     bigint not null,
    status      bigint not null, -- of the response; 0: none
    duration_us bigint not null,
    error       text collate "C" not null, -- a code; empty: delivered
    primary key (tenant_id, webhook_id, slot)
);
create index webhook_deliveries_newest on webhook_deliveries (tenant_id, webhook_id, id);

-- The places of webhooks in the feed. They belong to no tenant, because a process looks for the due ones
-- of all tenants.
create table webhook_cursors (
    webhook_id    uuid not null,
    part          bigint not null, -- 0 to 3 follow the feed, 4 to 7 are a replay, 8 is a test
    tenant        uuid not null,
    queue          bigint not null, -- 0: fast, 1: new, 2: slow
    state         bigint not null, -- 0: due at due_at, 1: idle, 2: claimed, 3: parked
    changed       bigint not null, -- 1: the webhook was changed while the part is claimed
    due_at        bigint not null,
    number        bigint not null, -- all items up to it are delivered
    until_number  bigint not null, -- 0: no end; -1: a test
    from_time     bigint not null, -- of a replay
    to_time       bigint not null,
    lease         bigint not null, -- counts the claims
    attempts      bigint not null, -- that have failed for the next item
    failing_since bigint not null,
    blocked       bigint not null, -- the number of the item that failed
    item_id       uuid, -- the item that failed, or the test to send
    slot          bigint not null, -- counts the attempts
    primary key (webhook_id, part)
);
create index webhook_cursors_due on webhook_cursors (queue, due_at);
create index webhook_cursors_tenant on webhook_cursors (tenant);
create index webhook_cursors_parked on webhook_cursors (part) where part = 0 and state = 3;

-- A process locks the row of a queue while it claims.
create table webhook_queues (queue bigint not null primary key);
insert into webhook_queues (queue) values (0), (1), (2);

-- The number of webhooks of the tenant. Without any, new changes need no wake-up.
alter table feeds add column webhooks bigint not null default 0;
insert into compatibility (migration, oldest) values (13, 4);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['webhooks', 'webhook_deliveries']
    loop
        execute format('alter table %I enable row level security', tenant_table);
        execute format('alter table %I force row level security', tenant_table);
        execute format($policy$
            create policy tenant_isolation on %I
            using (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            with check (tenant_id = nullif(current_setting('rolecall.tenant', true), '')::uuid)
            $policy$, tenant_table);
    end loop;
end
$$;
-- +goose StatementEnd
