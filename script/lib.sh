# script/lib.sh
#	  What the scripts that build and start servers share.  Sourced, not run.
#
# Gives them a temporary directory with a copy of the sources, in which an
# ordinary user may write; the build of it installed; and a private server
# there, which listens on a Unix socket in that directory alone.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
self=$(basename "$0")

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "$self" "$*" >&2; exit 1; }

if [ "$(id -u)" = 0 ]; then
	as_root() { "$@"; }
	# initdb and postgres refuse to be run by root.
	as_user() { runuser -u "$server_user" -- env -C "$work" HOME="$work" TMPDIR="$work" "$@"; }
else
	as_root() { sudo "$@"; }
	as_user() { env -C "$work" TMPDIR="$work" "$@"; }
fi

# Fail unless as_root works.
#   need_root PURPOSE
need_root()
{
	[ "$(id -u)" != 0 ] || return 0
	if command -v sudo >/dev/null; then
		! sudo -n true 2>/dev/null || return 0
		printf '%s: sudo is needed %s\n' "$self" "$1" >&2
		! sudo true || return 0
	fi
	die "root is needed $1: run this as root, or as a user who may use sudo"
}

# Install what is missing and set PG_CONFIG and bindir.
#   setup [PACKAGE...]
setup()
{
	trap 'finish $?' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	PG_CONFIG=$("$root/script/bootstrap" "$@") || exit 1
	export PG_CONFIG
	bindir=$("$PG_CONFIG" --bindir)
	server_user=$(id -un)
	if [ "$server_user" = root ]; then
		server_user=nobody
		! id postgres >/dev/null 2>&1 || server_user=postgres
	fi
	work=$(mktemp -d /tmp/snowflake.XXXXXX)
	chmod 700 "$work"
	if [ "$(id -u)" = 0 ]; then
		chown "$server_user" "$work"
	fi
	# A locale, time zone or service of the caller's must not change results.
	local name
	for name in "${!PG@}"; do
		[ "$name" = PG_CONFIG ] || unset "$name"
	done
	export LC_ALL=C.UTF-8 TZ=UTC
}

# Replaced by scripts that have more to clean up.
finish()
{
	trap '' HUP INT PIPE TERM
	clean_up
	exit "$1"
}

# The processes of this run: those whose working directory is in $work.
processes()
{
	{ find /proc/[0-9]*/cwd -maxdepth 0 -lname "$work*" 2>/dev/null || true; } | cut -d/ -f3
}

# Remove the shared memory of killed servers whose data directories are in a
# directory: the segment that postmaster.pid names, if that process made it and
# none uses it.
#   forget_memory DIRECTORY
forget_memory()
{
	{ find "$1" -name postmaster.pid -exec awk 'FNR == 1 { pid = $1 } FNR == 7 { print pid, $2 }' {} + || true; } |
		awk 'NR == FNR { maker[$2] = $1; next } $5 == maker[$2] && $7 == 0 { print $2 }' - /proc/sysvipc/shm |
		xargs -r -n 1 ipcrm -m
}

# Remove what libfaketime leaves of a process that is killed.
forget_clock() { rm -f "/dev/shm/faketime_shm_$1" "/dev/shm/sem.faketime_sem_$1"; }

# End the processes of this run, and remove what killed ones left.
end_processes()
{
	local pids pid signal=QUIT i

	for ((i = 0; i < 600; i++)); do
		pids=$(processes)
		# A command that has just been started may not be in its directory yet.
		[ -n "$pids" ] || { [ -n "${job:-}" ] && kill -0 -- "-$job" 2>/dev/null; } || break
		[ "$i" -lt 300 ] || signal=KILL
		for pid in $pids; do
			# initdb would leave shared memory.  It ends soon by itself.
			if [ $signal = QUIT ] && grep -qaE 'initdb|--(boot|check|single)' "/proc/$pid/cmdline" 2>/dev/null; then
				continue
			fi
			kill -s $signal "$pid" 2>/dev/null && kill -s CONT "$pid" 2>/dev/null && forget_clock "$pid" || true
		done
		sleep 0.1
	done
	forget_memory "$work"
}

clean_up()
{
	[ -n "${work:-}" ] || return 0
	end_processes
	rm -rf "$work"
}

# Copy the sources to $work/src, build them there and install the result: in
# $destdir, if servers can load an extension from there, and otherwise in the
# installation of PostgreSQL.  Leaves the settings for that in server.conf.
# A script's change_sources, if there is one, is called before the build.
#   build [MAKE ARGUMENT...]
build()
{
	local path control

	path=$(as_user "$bindir/postgres" --describe-config |
		grep -oE '^extension_(control_path|destdir)' | head -n 1) || true
	if [ -z "$path" ]; then
		destdir=
		control=$("$PG_CONFIG" --sharedir)/extension/snowflake.control
		if [ -e "$control" ] && ! grep -q 'never repeated' "$control"; then
			die "another extension named snowflake is installed in ${control%/*}: it would be overwritten.
Set PG_CONFIG to a PostgreSQL installation without it."
		fi
		need_root "to install the extension, as this server loads extensions from one place only"
	else
		destdir=$work/install
	fi

	# Through a pipe, as the user of the servers may not be allowed to read
	# the checkout.
	as_user mkdir -p src
	tar -C "$root" --exclude=./.git --exclude='*.o' --exclude='*.bc' \
		--exclude='*.so' -cf - . | as_user tar -C src --no-same-owner -xf -
	[ "$(type -t change_sources)" != function ] || change_sources
	as_user make -C src -s PG_CONFIG="$PG_CONFIG" "$@"

	{
		# Where a server that is killed leaves nothing in /dev/shm
		echo "dynamic_shared_memory_type = mmap"
		case $path in
			extension_control_path) echo "$path = '$destdir$("$PG_CONFIG" --sharedir):\$system'" ;;
			extension_destdir) echo "$path = '$destdir'" ;;
		esac
		[ -z "$path" ] || echo "dynamic_library_path = '$destdir$("$PG_CONFIG" --pkglibdir):\$libdir'"
	} | as_user tee server.conf >/dev/null
	if [ -n "$destdir" ]; then
		as_user make -C src -s install PG_CONFIG="$PG_CONFIG" DESTDIR="$destdir" >/dev/null
	else
		as_root make -C "$work/src" -s install PG_CONFIG="$PG_CONFIG" >/dev/null
	fi
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

# Run TAP tests on the build.
#   prove [MAKE ARGUMENT...]
prove()
{
	as_user env DESTDIR="$destdir" TEMP_CONFIG="$work/server.conf" \
		make -C src -s prove_installcheck PG_CONFIG="$PG_CONFIG" "$@"
}

# Make a cluster.
#   make_cluster DIRECTORY
make_cluster()
{
	apart as_user "$bindir/initdb" -D "$1" -U postgres -A trust -N \
		--locale=C.UTF-8 -E UTF8 >"$work/initdb.log" 2>&1
	wait "$job" || { cat "$work/initdb.log" >&2; die "initdb failed"; }
	as_user sh -c 'cat server.conf >>"$1/postgresql.conf"' sh "$1"
}

# Start a private server in $work with the given settings.
#   start_server [SETTING...]
start_server()
{
	export PGHOST=$work PGPORT=5432 PGUSER=postgres PGDATABASE=postgres

	make_cluster "$work/data"
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$work'" \
		"max_connections = 120" "$@" |
		as_user tee -a "$work/data/postgresql.conf" >/dev/null
	as_user "$bindir/pg_ctl" -D "$work/data" -l "$work/server.log" -w start >/dev/null ||
		{ cat "$work/server.log" >&2; die "the server did not start"; }
}

stop_server()
{
	if [ -n "${work:-}" ] && [ -e "$work/data/postmaster.pid" ]; then
		as_user "$bindir/pg_ctl" -D "$work/data" -m fast -w stop >/dev/null 2>&1 ||
			as_user "$bindir/pg_ctl" -D "$work/data" -m immediate -w stop >/dev/null 2>&1 || true
	fi
}
