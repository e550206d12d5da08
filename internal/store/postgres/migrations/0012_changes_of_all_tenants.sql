-- +goose Up
-- The feed of the changes of all tenants has places: 1, 2, 3, … without gaps. A place has consecutive
-- numbers of one tenant. feed_news has the numbers without a place. These tables belong to no tenant,
-- and have only ids and numbers.
create sequence feed_arrivals;
grant usage on sequence feed_arrivals to public; -- migrate --grant-to grants only tables

create table feed_news (
    n            bigint not null default nextval('feed_arrivals') primary key,
    tenant       uuid   not null,
    first_number bigint not null,
    last_number  bigint not null
);

create table feed_places (
    place        bigint not null primary key,
    tenant       uuid   not null,
    first_number bigint not null,
    last_number  bigint not null,
    mark         uuid   not null -- differs if a lost place is given again
);
create index feed_places_tenant on feed_places (tenant, first_number);

-- One row. A lock on it is needed to give places.
create table feed_of_tenants (
    id           bigint not null primary key, -- 1
    last         bigint not null, -- the last place that was given
    begin_place  bigint not null, -- the newest place with a number whose event was deleted
    begin_number bigint not null  -- the newest such number of this place
);

-- The last number that was in feed_news. It is less than last after an older program gave numbers.
alter table feeds add column published bigint not null default 0;
insert into compatibility (migration, oldest) values (12, 4);
