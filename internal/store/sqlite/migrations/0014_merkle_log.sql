-- +goose Up
-- The events of a tenant are the leaves of a Merkle log, in the order of their numbers in the feed.
-- Each change of a logged event changes the root of the log.
alter table events add column salts blob; -- of the commitments in the leaf; null: the event has no leaf yet
alter table event_queue add column leaf blob; -- the hash of the leaf; null: an older program inserted the row
alter table changes add column leaf blob;
create index changes_event on changes (tenant_id, event_id);

create table logs (
    tenant_id   blob    not null primary key,
    size        integer not null, -- the number of leaves
    root        blob    not null, -- the hash of the whole tree
    removed     integer not null, -- events up to this number were deleted because of their age
    built_at    integer not null,
    signing_key text              -- encrypted; null: no checkpoint was signed yet
) strict, without rowid;

-- 256 consecutive hashes of a level, or fewer at the end of the log. Level 0 has the hashes of the
-- leaves. Each hash of the next level is that of a complete tile.
create table tiles (
    tenant_id blob    not null,
    level     integer not null,
    n         integer not null,
    hashes    blob    not null,
    primary key (tenant_id, level, n)
) strict, without rowid;
insert into compatibility (migration, oldest) values (14, 4);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('changes', 'changes_event', '1000000 10000 1'), ('logs', 'logs', '1000000 1'), ('tiles', 'tiles', '1000000 10000 1000 1');
analyze sqlite_schema; -- reads the figures
