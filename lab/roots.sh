# lab/roots.sh
#	  Throw-away roots of Debian and Ubuntu, for lab/fresh, lab/images,
#	  lab/matrix and lab/package: mmdebstrap makes them, and systemd-nspawn runs
#	  commands in them.  Sourced, not run.
#
# $DEBIAN_MIRROR and $UBUNTU_MIRROR name package sources other than their own.

# shellcheck shell=bash
. "$(dirname "$0")/../script/lib/common.sh"
debian=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
ubuntu=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
keyrings=/usr/share/keyrings

# Begin again as root, if sudo allows that, install what makes roots, and make $work,
# a directory that goes away at the end.
#   begin [ARGUMENT OF THE SCRIPT...]
begin()
{
	[ "$(id -u)" = 0 ] || exec sudo -- "$program" "$@"
	trap_end
	work=$(mktemp -d /var/tmp/snowflake-"$self".XXXXXX)
	chmod 755 "$work"
	"$root/script/bootstrap" mmdebstrap systemd-container debian-archive-keyring >/dev/null
}

finish()
{
	# systemd-nspawn kills all that runs in its root.
	[ -z "${child:-}" ] || { kill -TERM "$child" && wait "$child"; } 2>/dev/null
	[ -z "${work:-}" ] || [ -n "$keep" ] || rm -rf --one-file-system "$work"
}

# Make a root with packages, of $architecture if that is set.  Packages that are
# installed there later start no service and make no cluster.  The log is $work/log.
#   make_root DIRECTORY SUITE PACKAGES [SUITE ON TOP, PACKAGES FROM THERE]
make_root()
{
	local preferences="Package: ${5:-}\nPin: release a=${4:-}\nPin-Priority: 990\n"
	local keyring=$keyrings/debian-archive-keyring.gpg sources=("deb $debian $2 main" ${4:+"deb $debian $4 main"})

	# How this machine's apt gets at its sources: proxies, and whether an old copy will do
	apt-config dump --format '%f "%v";%n' Acquire | grep -v '^Acquire::IndexTargets' >"$work/acquire"
	if [ "$2" = noble ]; then
		mmdebstrap --quiet --variant=extract --include=ubuntu-archive-keyring --aptopt="$work/acquire" --keyring="$keyring" \
			sid "$work/keys" "deb $debian sid main" >"$work/log" 2>&1 || return
		keyring=$work/keys$keyrings/ubuntu-archive-keyring.gpg
		sources=("deb $ubuntu noble main universe" "deb $ubuntu noble-updates main universe")
	fi
	patiently "making a root of $2 ${4:-}" "$work/log" mmdebstrap --variant=minbase --include="$3" --aptopt="$work/acquire" ${architecture:+--architectures="$architecture"} \
		--keyring="$keyring" \
		--setup-hook='mkdir -p "$1/etc/postgresql-common/createcluster.d"' \
		--setup-hook='echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.d/none.conf"' \
		${4:+--setup-hook="printf '$preferences' >\"\$1/etc/apt/preferences.d/top\""} \
		--customize-hook='printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod +x "$1/usr/sbin/policy-rc.d"' \
		"$2" "$1" "${sources[@]}"
}

# Say why a root could not be made, and skip what needs it if the reason is that
# packages could not be fetched.
#   no_root WHAT
no_root()
{
	tail -n 20 "$work/log"
	if grep -q 'Failed to fetch' "$work/log"; then
		skip "$1: $(grep -m 1 'Failed to fetch' "$work/log")"
	else
		not_ok "$1: the root could not be made"
	fi
}

# Run a command, or a function of this script, in a root, with options of
# systemd-nspawn.  With --volatile=overlay the root stays as it is.  In the background,
# as a signal to this script must be obeyed at once.
#   in_root DIRECTORY [OPTION...] -- COMMAND [ARGUMENT...]
in_root()
{
	local status=0 options=(--directory="$1")

	shift
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	[ "$(type -t "$1")" != function ] || set -- bash -euo pipefail -c "$(declare -f); \"\$@\"" "$1" "$@"
	# Its own errors go apart, as without systemd on this machine it complains in the end.
	systemd-nspawn --quiet --register=no --keep-unit --as-pid2 --pipe --resolv-conf=copy-host --timezone=off --setenv=TZ=UTC \
		--setenv=LANG=C.UTF-8 --setenv=DEBIAN_FRONTEND=noninteractive "${options[@]}" \
		sh -c 'exec "$@" 2>&1' sh "$@" </dev/null 2>"$work/nspawn.log" &
	child=$!
	wait "$child" || status=$?
	child=
	[ "$status" = 0 ] || grep -v '^Attempted to remove' "$work/nspawn.log" || true
	return "$status"
}
