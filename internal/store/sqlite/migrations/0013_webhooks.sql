-- +goose Up
-- Webhooks send the items of the change feed to endpoints of the tenant. An older program does not send
-- them, and does not wake the parts that follow the feed: these look for changes every minute.
create table webhooks (
    tenant_id          blob not null,
    id                 blob not null,
    url                text not null,
    types              text not null, -- a JSON array; empty for all types
    service_account_id blob not null, -- may have been deleted
    ignore_actors      text not null, -- a JSON array
    enabled            integer not null,
    disabled_reason    text, -- why Rolecall disabled it
    secret             blob not null, -- encrypted
    old_secret         blob, -- encrypted; the secret before the last rotation
    old_until          integer not null,
    created_at         integer not null,
    updated_at         integer not null,
    version            integer not null,
    primary key (tenant_id, id)
) strict, without rowid;

-- The newest attempts of each webhook. A new attempt takes the place of an old one.
create table webhook_deliveries (
    tenant_id   blob not null,
    webhook_id  blob not null,
    slot        integer not null,
    id          blob not null,
    item_id     blob not null,
    type        text not null,
    attempt     integer not null,
    status      integer not null, -- of the response; 0: none
    duration_us integer not null,
    error       text not null, -- a code; empty: delivered
    primary key (tenant_id, webhook_id, slot)
) strict, without rowid;
create index webhook_deliveries_newest on webhook_deliveries (tenant_id, webhook_id, id);

-- The places of webhooks in the feed. They belong to no tenant, because a process looks for the due ones
-- of all tenants.
create table webhook_cursors (
    webhook_id    blob not null,
    part          integer not null, -- 0 to 3 follow the feed, 4 to 7 are a replay, 8 is a test
    tenant        blob not null,
    queue          integer not null, -- 0: fast, 1: new, 2: slow
    state         integer not null, -- 0: due at due_at, 1: idle, 2: claimed, 3: parked
    changed       integer not null, -- 1: the webhook was changed while the part is claimed
    due_at        integer not null,
    number        integer not null, -- all items up to it are delivered
    until_number  integer not null, -- 0: no end; -1: a test
    from_time     integer not null, -- of a replay
    to_time       integer not null,
    lease         integer not null, -- counts the claims
    attempts      integer not null, -- that have failed for the next item
    failing_since integer not null,
    blocked       integer not null, -- the number of the item that failed
    item_id       blob, -- the item that failed, or the test to send
    slot          integer not null, -- counts the attempts
    primary key (webhook_id, part)
) strict, without rowid;
create index webhook_cursors_due on webhook_cursors (queue, due_at);
create index webhook_cursors_tenant on webhook_cursors (tenant);
create index webhook_cursors_parked on webhook_cursors (part) where part = 0 and state = 3;

-- A process locks the row of a queue while it claims.
create table webhook_queues (queue integer not null primary key) strict;
insert into webhook_queues (queue) values (0), (1), (2);

-- The number of webhooks of the tenant. Without any, new changes need no wake-up.
alter table feeds add column webhooks integer not null default 0;
insert into compatibility (migration, oldest) values (13, 4);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('webhooks', 'webhooks', '20000 20 1'), ('webhook_deliveries', 'webhook_deliveries', '1000000 10000 500 1'),
    ('webhook_deliveries', 'webhook_deliveries_newest', '1000000 10000 500 1'), ('webhook_cursors', 'webhook_cursors', '100000 5 1'),
    ('webhook_cursors', 'webhook_cursors_due', '100000 30000 1'), ('webhook_cursors', 'webhook_cursors_tenant', '100000 100'),
    ('webhook_cursors', 'webhook_cursors_parked', '1000 1000');
analyze sqlite_schema; -- reads the figures
