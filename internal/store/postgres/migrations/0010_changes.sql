-- +goose Up
-- The change feed of a tenant gives each event a number, in an order in which no event follows one
-- that depends on it. event_queue has the events without a number. They get their numbers
-- after their transactions have ended, in the order of n.
create sequence event_arrivals;
grant usage on sequence event_arrivals to public; -- the default below runs in the inserts of older programs, whose role may have no other privileges for it

create table event_queue (
    tenant_id uuid   not null,
    n         bigint not null default nextval('event_arrivals'),
    event_id  uuid   not null,
    primary key (tenant_id, n)
);

create table changes (
    tenant_id uuid   not null,
    number    bigint not null, -- 1, 2, 3, … without gaps
    event_id  uuid   not null,
    arrival   bigint not null, -- n of the queue, or events.arrival
    primary key (tenant_id, number)
);

-- A lock on the row is needed to give numbers.
create table feeds (
    tenant_id uuid   not null primary key,
    last      bigint not null -- the last number that was given
);

-- 0: an event that is older than this migration and has no number. Another number: an event of
-- an older program, which does not know the queue. Null: the event is in the queue, or has a number.
alter table events add column arrival bigint default 0;
alter table events alter column arrival set default nextval('event_arrivals');
create index events_arrival on events (tenant_id, arrival, id) where arrival is not null;
insert into compatibility (migration, oldest) values (10, 4);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['event_queue', 'changes', 'feeds']
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
