# script/lib/common.sh
#	  What the programs of script/ and lab/ share.  Sourced, not run.

# shellcheck shell=bash
# Another shell, as in "sh script/test", stops reading here.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -euo pipefail

# The scripts and the tests read what other programs print, which must be in
# English.  LANGUAGE can choose another language even with this locale.
unset LANGUAGE
export LC_ALL=C.UTF-8

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(realpath "$0")
self=${program##*/}
started=$EPOCHSECONDS

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$self" "$*" >&2; exit 1; }

usage() { sed -n '3,/^$/s/^# \{0,1\}//p' "$program"; exit "$1"; }
unknown() { printf '%s: unknown argument "%s"; try --help\n' "$self" "$1" >&2; exit 2; }

# Take no option but --help.
#   no_options [ARGUMENT...]
no_options()
{
	case "${1:-}" in
		-h|--help) usage 0 ;;
		-*) unknown "$1" ;;
	esac
}

# Run a command whose output goes to a log, and say every 15 seconds what takes so long.
#   patiently WHAT LOG COMMAND...
patiently()
{
	local begun=$SECONDS status=0 teller teller_pid

	exec {teller}> >(while status=0; read -rt 15 || status=$?; [ "$status" -gt 128 ]; do
		say "         $1: $((SECONDS - begun)) s"
	done)
	teller_pid=$!
	"${@:3}" >"$2" 2>&1 </dev/null {teller}>&- || status=$?
	exec {teller}>&-
	wait "$teller_pid" || true
	return "$status"
}

# Results.  "close" says again what failed or was skipped, keeps the files if anything
# failed, prints the line that add_counts reads, and exits.
passed=0 failed=0 skipped=0 failures='' skips=''
ok() { passed=$((passed + 1)); say "ok       $*"; }
not_ok() { failed=$((failed + 1)); failures+="  $*"$'\n'; say "NOT OK   $*"; }
skip() { skipped=$((skipped + 1)); skips+="  $*"$'\n'; say "skipped  $*"; }

# What pg_regress and the isolation tester say if all of their tests pass, for "try"
tests_passed='s/^[# ]*\(All [0-9]* tests passed\).*/\1/p'

# Run a command, count whether it succeeds, and show what it printed if not.
#   try WHAT SED-COMMAND COMMAND...	SED-COMMAND prints what tells the result
try()
{
	if patiently "$1" "$work/try.log" "${@:3}"; then
		ok "$1$(sed -n "$2" "$work/try.log" | sed '1s/^/: /; 2,$s/^/, /' | tr -d '\n')"
	else
		not_ok "$1"
		tail -n 1000 "$work/try.log"
	fi
}

keep=
close()
{
	[ -z "$skips" ] || printf '\nSkipped:\n%s' "$skips"
	[ -z "$failures" ] || printf '\nFailed:\n%s' "$failures"
	if [ "$failed" -gt 0 ] && [ -n "${work:-}" ]; then
		keep=yes
		say "The files are in $work."
	fi
	[ -z "$skips$failures" ] || say ""
	say "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
	exit $((failed > 0))
}

# Add the counts in the last line of a script's log.  Fails, and adds nothing, if
# there are none, or if the script failed without counting a failure.
#   add_counts STATUS LOG
add_counts()
{
	[[ $(tail -n 1 "$2") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]] || return
	[ "$1" = 0 ] || [ "${BASH_REMATCH[2]}" -gt 0 ] || return
	passed=$((passed + BASH_REMATCH[1]))
	failed=$((failed + BASH_REMATCH[2]))
	skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
}

if [ "$(id -u)" = 0 ]; then
	as_root() { "$@"; }
	# initdb and postgres refuse to be run by root.
	as_user() { runuser -u "$server_user" -- env -C "$work" HOME="$work" TMPDIR="$work" "$@"; }
else
	as_root() { sudo "$@"; }
	as_user() { env -C "$work" TMPDIR="$work" "$@"; }
fi

# Call "finish STATUS" at the end, also at one by a signal.
trap_end()
{
	trap 'at_end $?' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

at_end()
{
	trap '' HUP INT PIPE TERM
	set +e
	finish "$1"
	exit "$1"
}

# Install what is missing and set PG_CONFIG and bindir.
#   setup [PACKAGE...]
setup()
{
	local config

	trap_end
	config=$("$root/script/bootstrap" "$@")
	# A time zone or service of the caller's must not change results.
	# shellcheck disable=SC2046
	unset $(compgen -v PG | grep -v '^PG_TEST_')
	export PG_CONFIG=$config TZ=UTC
	bindir=$("$PG_CONFIG" --bindir)
	server_user=$(id -un)
	[ "$server_user" != root ] || server_user=$(id -un postgres 2>/dev/null || echo nobody)
	work=$(mktemp -d /tmp/snowflake.XXXXXX)
	chown "$server_user" "$work"
}

# The processes of this run: those whose working directory is in $work.
processes()
{
	{ find /proc/[0-9]*/cwd -maxdepth 0 -lname "$work*" 2>/dev/null || true; } | cut -d/ -f3
}

# The shared memory segments that these processes made and that none uses.  An older
# segment is of a process that had the same number.
#   segments_of PID...
segments_of()
{
	awk -v pids=" $* " -v started="$started" \
		'index(pids, " " $5 " ") && $7 == 0 && $14 >= started { print $2 }' /proc/sysvipc/shm
}

# End the processes of this run, and remove the shared memory segments that they and
# killed ones left.
end_processes()
{
	local pids pid ours signal=QUIT i

	# This script is none of the processes that work there.
	cd /
	ours=$({ find "$work" -name postmaster.pid -exec sed -sn 1p {} + || true; } | xargs)
	for ((i = 0; i < 600; i++)); do
		pids=$(processes | xargs)
		# A command that has just been started may not be in its directory yet.
		[ -n "$pids" ] || { [ -n "${job:-}" ] && kill -0 -- "-$job" 2>/dev/null; } || break
		[ "$i" -lt 300 ] || signal=KILL
		ours+=" $pids"
		for pid in $pids; do
			kill -s $signal "$pid" && kill -s CONT "$pid"
		done 2>/dev/null
		sleep 0.1
	done
	segments_of "$ours" | xargs -r -n 1 ipcrm -m
}

# Replaced by scripts that have something else to clean up.
finish() { clean_up; }

clean_up()
{
	[ -n "${work:-}" ] || return 0
	end_processes
	[ -n "$keep" ] || rm -rf "$work"
}

# Copy the sources to a directory, as the user of a command, who may not be
# allowed to read the checkout.
#   copy_sources DIRECTORY [COMMAND...]
copy_sources()
{
	"${@:2}" mkdir -p "$1"
	tar -C "$root" --exclude=./.git --exclude=./packages --exclude='./build-*' \
		--exclude='*.o' --exclude='*.bc' --exclude='*.so' -cf - . | "${@:2}" tar -C "$1" --no-same-owner -xf -
}

# Run a command that has nothing to say unless there is something wrong.
#   quietly WHAT COMMAND...
quietly()
{
	patiently "$1" "$work/quiet.log" "${@:2}" || { cat "$work/quiet.log" >&2; return 1; }
}

# Copy the sources to $work/src, build them there and install the result: in
# $destdir, if servers can load an extension from there, and otherwise in the
# installation of PostgreSQL.  Leaves the settings for that in server.conf.
# A script's change_sources, if there is one, is called before the build.
#   build [MAKE ARGUMENT...]
build()
{
	local path control install=as_user

	path=$(as_user "$bindir/postgres" --describe-config | grep -oE '^extension_(control_path|destdir)' | head -n 1) || true
	destdir=${path:+$work/install}
	if [ -z "$path" ]; then
		control=$("$PG_CONFIG" --sharedir)/extension/snowflake.control
		[ ! -e "$control" ] || grep -q 'time-sortable 64-bit IDs' "$control" ||
			die "another extension named snowflake is installed in ${control%/*}: it would be overwritten.
Set PG_CONFIG to a PostgreSQL installation without it."
		install=as_root
	fi

	copy_sources "$work/src" as_user
	[ "$(type -t change_sources)" != function ] || change_sources
	quietly "building" as_user make -C src -s PG_CONFIG="$PG_CONFIG" "$@"
	quietly "installing" "$install" make -C "$work/src" -s install PG_CONFIG="$PG_CONFIG" DESTDIR="$destdir"
	{
		# Where a server that is killed leaves nothing in /dev/shm
		echo "dynamic_shared_memory_type = mmap"
		case $path in
			extension_control_path) echo "$path = '$destdir$("$PG_CONFIG" --sharedir):\$system'" ;;
			extension_destdir) echo "$path = '$destdir'" ;;
		esac
		[ -z "$path" ] || echo "dynamic_library_path = '$destdir$("$PG_CONFIG" --pkglibdir):\$libdir'"
	} | as_user tee server.conf >/dev/null
}

# Start a command in the background, where Ctrl-C does not reach it: finish()
# ends it.
apart()
{
	set -m
	"$@" </dev/null &
	set +m
	job=$!
}

#   make_cluster DIRECTORY [SETTING...]
make_cluster()
{
	apart as_user "$bindir/initdb" -D "$1" -U postgres -A trust -N \
		--locale=C.UTF-8 -E UTF8 >"$work/initdb.log" 2>&1
	wait "$job" || { cat "$work/initdb.log" >&2; die "initdb failed"; }
	printf '%s\n' "${@:2}" | cat "$work/server.conf" - | as_user tee -a "$1/postgresql.conf" >/dev/null
}

#   make_server [SETTING...]
make_server()
{
	export PGHOST=$work PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	make_cluster "$work/data" "listen_addresses = ''" "unix_socket_directories = '$work'" "max_connections = 120" "$@"
}

#   start_server [SETTING...]
start_server()
{
	make_server "$@"
	control_server start || { cat "$work/server.log" >&2; die "the server did not start"; }
}

control_server() { as_user "$bindir/pg_ctl" -D "$work/data" -l "$work/server.log" -w "$@" >/dev/null; }

stop_server()
{
	[ ! -e "${work:-}/data/postmaster.pid" ] || control_server -m fast stop 2>/dev/null ||
		control_server -m immediate stop 2>/dev/null || true
}

sql() { "$bindir/psql" -X -q -At -v ON_ERROR_STOP=1 "$@"; }
