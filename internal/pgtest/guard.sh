# guard.sh BINARIES FOLDER OPTIONS: a PostgreSQL server in FOLDER until the end of
# standard input.
set -eu
trap 'rm -rf "$2"' EXIT
"$1/initdb" --pgdata "$2/data" --username admin --auth trust --no-sync --no-instructions \
	--encoding UTF8 --locale C >"$2/initdb.log" 2>&1 || { cat "$2/initdb.log" >&2; exit 1; }
"$1/pg_ctl" start --wait --silent --pgdata "$2/data" --log "$2/server.log" --options "$3" || { cat "$2/server.log" >&2; exit 1; }
echo ready
exec >/dev/null 2>&1
cat || true
"$1/pg_ctl" stop --silent --pgdata "$2/data" --mode immediate
