-- +goose Up
-- The events of a tenant are the leaves of a Merkle log, in the order of their numbers in the feed.
-- Each change of a logged event changes the root of the log.
alter table events add column salts bytea; -- of the commitments in the leaf; null: the event has no leaf yet
alter table event_queue add column leaf bytea; -- the hash of the leaf; null: an older program inserted the row
alter table changes add column leaf bytea;
create index changes_event on changes (tenant_id, event_id);

create table logs (
    tenant_id   uuid   not null primary key,
    size        bigint not null, -- the number of leaves
    root        bytea  not null, -- the hash of the whole tree
    removed     bigint not null, -- events up to this number were deleted because of their age
    built_at    bigint not null,
    signing_key text             -- encrypted; null: no checkpoint was signed yet
);

-- 256 consecutive hashes of a level, or fewer at the end of the log. Level 0 has the hashes of the
-- leaves. Each hash of the next level is that of a complete tile.
create table tiles (
    tenant_id uuid   not null,
    level     bigint not null,
    n         bigint not null,
    hashes    bytea  not null,
    primary key (tenant_id, level, n)
);
insert into compatibility (migration, oldest) values (14, 4);

-- +goose StatementBegin
do $$
declare
    tenant_table text;
begin
    foreach tenant_table in array array['logs', 'tiles']
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
