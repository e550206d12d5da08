#!/bin/sh
# Creates the role and the database of Rolecall when the image of PostgreSQL starts for the first time.
# The role must not be a superuser, because a superuser bypasses row-level security.
set -eu
psql -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d postgres <<'SQL'
\set password `cat /run/secrets/database-password`
create role rolecall login password :'password';
create database rolecall owner rolecall;
SQL
