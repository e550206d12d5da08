-- +goose Up
-- The change feed of a tenant gives each event a number, in an order in which no event follows one
-- that depends on it. event_queue has the events without a number. They get their numbers
-- after their transactions have ended, in the order of n.
create table event_queue (
    n         integer primary key, -- larger than all others in the queue
    tenant_id blob    not null,
    event_id  blob    not null
) strict;
create index event_queue_tenant on event_queue (tenant_id, n);

create table changes (
    tenant_id blob    not null,
    number    integer not null, -- 1, 2, 3, … without gaps
    event_id  blob    not null,
    arrival   integer not null, -- n of the queue, or events.arrival
    primary key (tenant_id, number)
) strict, without rowid;

create table feeds (
    tenant_id blob    not null primary key,
    last      integer not null -- the last number that was given
) strict, without rowid;

-- 0: an event that is older than this migration and has no number. Null: the event is in the
-- queue, or has a number.
alter table events add column arrival integer default 0;
create index events_arrival on events (tenant_id, arrival, id) where arrival is not null;

-- An older program does not know the queue.
-- +goose StatementBegin
create trigger events_of_older_programs after insert on events when new.arrival is not null
begin
    insert into event_queue (tenant_id, event_id) values (new.tenant_id, new.id);
    update events set arrival = null where tenant_id = new.tenant_id and id = new.id;
end;
-- +goose StatementEnd
insert into compatibility (migration, oldest) values (10, 4);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('event_queue', 'event_queue_tenant', '1000000 10000 1'), ('changes', 'changes', '1000000 10000 1'), ('feeds', 'feeds', '1000000 1'),
    ('events', 'events_arrival', '1000000 10000 10 1');
analyze sqlite_schema; -- reads the figures
