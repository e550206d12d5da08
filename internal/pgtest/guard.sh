# guard.sh BINARIES FOLDER OPTIONS [PRIMARY] runs a PostgreSQL server with its data in FOLDER, a
# standby of PRIMARY if that is given. It reads the commands start, kill and promote, one per line,
# and prints done after each. At the end of standard input it stops the server and deletes FOLDER.
set -eu
bin=$1 data=$2/data log=$2/server.log options=$3 primary=${4-}

leave() {
	"$bin/pg_ctl" stop --silent --pgdata "$data" --mode immediate || true
	rm -rf "${data%/data}"
}
trap leave EXIT

fail() { cat "$log" >&2; exit 1; }

make() {
	if [ "$primary" ]; then
		"$bin/pg_basebackup" --pgdata "$data" --dbname "$primary" --write-recovery-conf --checkpoint fast --no-sync
	else
		"$bin/initdb" --pgdata "$data" --username admin --auth trust --no-sync --no-instructions --encoding UTF8 --locale C
	fi
}

# dies kills all processes of the server at once, like a loss of power.
dies() {
	postmaster=$(head -n 1 "$data/postmaster.pid")
	kill -STOP "$postmaster" # so that it starts no new process
	all="$(ps -A -o pid= -o ppid= | awk -v parent="$postmaster" '$2 == parent { print $1 }') $postmaster"
	kill -KILL $all 2>/dev/null || true # a process may have ended since
	for pid in $all; do
		while ps -o stat= -p "$pid" | grep -qv '^Z'; do sleep 0.01; done
	done
	rm -f "$data/postmaster.pid" "${data%/data}"/.s.PGSQL.*
}

make >"$log" 2>&1 || fail
while read -r order; do
	case $order in
	start) "$bin/pg_ctl" start --wait --silent --pgdata "$data" --log "$log" --options "$options" || fail ;;
	kill) dies ;;
	promote) "$bin/pg_ctl" promote --wait --silent --pgdata "$data" >"$log" 2>&1 || fail ;;
	esac
	echo 'done'
done
exec >/dev/null 2>&1
