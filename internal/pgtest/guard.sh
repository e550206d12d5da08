# guard.sh BINARIES FOLDER OPTIONS [PRIMARY]: a PostgreSQL server in FOLDER until the
# end of standard input, a standby of PRIMARY if that is given. It does what each line
# says, start, kill or promote, and answers done.
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

# dies kills the server as a loss of power does: no process of it does anything more.
dies() {
	postmaster=$(head -n 1 "$data/postmaster.pid")
	kill -STOP "$postmaster" # that it starts no other
	all="$(ps -A -o pid= -o ppid= | awk -v parent="$postmaster" '$2 == parent { print $1 }') $postmaster"
	kill -KILL $all 2>/dev/null || true # one of them may have just left
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
