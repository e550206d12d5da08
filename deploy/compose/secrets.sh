#!/bin/sh
# Creates the secrets of compose.yaml next to this file, unless they exist. Run it as root, or with sudo,
# so that the users of the two images can read their secrets and other users cannot: 65532 is Rolecall,
# and 999 is PostgreSQL.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets
test -s database-superuser || openssl rand -hex 24 > database-superuser
test -s database-password || openssl rand -hex 24 > database-password
test -s database-url || printf 'postgres://rolecall:%s@database:5432/rolecall\n' "$(cat database-password)" > database-url
test -s keys || openssl rand -base64 32 > keys
chmod 711 .
chown 65532:65532 database-url keys
chown 999:999 database-superuser database-password
