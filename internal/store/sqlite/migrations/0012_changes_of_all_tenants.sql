-- +goose Up
-- The feed of the changes of all tenants has places: 1, 2, 3, … without gaps. A place has consecutive
-- numbers of one tenant. feed_news has the numbers without a place. These tables belong to no tenant,
-- and have only ids and numbers.
create table feed_news (
    n            integer primary key, -- larger than all others in the table
    tenant       blob    not null,
    first_number integer not null,
    last_number  integer not null
) strict;

create table feed_places (
    place        integer not null primary key,
    tenant       blob    not null,
    first_number integer not null,
    last_number  integer not null,
    mark         blob    not null -- differs if a lost place is given again
) strict, without rowid;
create index feed_places_tenant on feed_places (tenant, first_number);

-- One row. A lock on it is needed to give places.
create table feed_of_tenants (
    id           integer not null primary key, -- 1
    last         integer not null, -- the last place that was given
    begin_place  integer not null, -- the newest place with a number whose event was deleted
    begin_number integer not null  -- the newest such number of this place
) strict, without rowid;

-- The last number that was in feed_news. It is less than last after an older program gave numbers.
alter table feeds add column published integer not null default 0;
insert into compatibility (migration, oldest) values (12, 4);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('feed_places', 'feed_places', '1000000 1'), ('feed_places', 'feed_places_tenant', '1000000 100 1'),
    ('feed_of_tenants', 'feed_of_tenants', '1 1');
analyze sqlite_schema; -- reads the figures
