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

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		command -v sudo >/dev/null || die "root is needed to install: run this as root, or install sudo"
		sudo "$@"
	fi
}

# initdb and postgres refuse to be run by root.
if [ "$(id -u)" = 0 ]; then
	as_user() { runuser -u "$server_user" -- env -C "$work" HOME="$work" "$@"; }
else
	as_user() { env -C "$work" "$@"; }
fi

# Install what is missing and set PG_CONFIG and bindir.
#   setup [PACKAGE...]
setup()
{
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
	trap 'finish $?' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
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
	trap '' INT TERM
	stop_server
	rm -rf "$work"
	exit "$1"
}

# Copy the sources to $work/src, build them there and install the result.
#   build [MAKE ARGUMENT...]
build()
{
	local control

	control=$("$PG_CONFIG" --sharedir)/extension/snowflake.control
	if [ -e "$control" ] && ! grep -q 'never repeated' "$control"; then
		die "another extension named snowflake is installed in ${control%/*}: it would be overwritten.
Set PG_CONFIG to a PostgreSQL installation without it."
	fi

	# Through a pipe, as the user of the servers may not be allowed to read
	# the checkout.
	as_user mkdir -p src
	tar -C "$root" --exclude=./.git --exclude='*.o' --exclude='*.bc' \
		--exclude='*.so' -cf - . | as_user tar -C src --no-same-owner -xf -
	as_user make -C src -s PG_CONFIG="$PG_CONFIG" "$@"
	as_root make -C "$work/src" -s install PG_CONFIG="$PG_CONFIG" >/dev/null
}

# Make a cluster.  In a session of its own and waited for, even by finish, as an
# initdb that Ctrl-C kills leaves shared memory behind.
#   make_cluster DIRECTORY
make_cluster()
{
	as_user setsid -w "$bindir/initdb" -D "$1" -U postgres -A trust -N \
		--locale=C.UTF-8 -E UTF8 >"$work/initdb.log" 2>&1 &
	initdb=$!
	wait "$initdb" || { cat "$work/initdb.log" >&2; die "initdb failed"; }
	initdb=
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
	[ -z "${initdb:-}" ] || wait "$initdb" 2>/dev/null || true
	if [ -n "${work:-}" ] && [ -e "$work/data/postmaster.pid" ]; then
		as_user "$bindir/pg_ctl" -D "$work/data" -m fast -w stop >/dev/null 2>&1 ||
			as_user "$bindir/pg_ctl" -D "$work/data" -m immediate -w stop >/dev/null 2>&1 || true
	fi
}
