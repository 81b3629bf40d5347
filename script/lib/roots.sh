# script/lib/roots.sh
#	  Throw-away roots of Debian, for script/fresh, script/images, script/matrix
#	  and script/package.  Sourced, not run.
#
# A root is made by debootstrap.  What runs in it has namespaces of its own:
# nothing of it is left mounted or running, however it ends.  A root may be of
# another architecture, whose programs QEMU emulates.

# shellcheck shell=bash disable=SC2034 source-path=SCRIPTDIR/..
. "$(dirname "$0")/lib/common.sh"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Whether this script can use roots; if not, "reason" says why not.  Runs the
# script again as root, if sudo allows that.
#   can_use_roots [ARGUMENT OF THE SCRIPT...]
# shellcheck disable=SC2034,SC2154
can_use_roots()
{
	if [ "$(id -u)" != 0 ]; then
		! sudo true || exec sudo -- "$program" "$@"
		reason="roots of Debian need root or sudo"
	elif ! unshare --mount --pid --fork --ipc true 2>/dev/null; then
		reason="this machine does not allow namespaces"
	else
		return 0
	fi
	return 1
}

# Run a function and what it starts in namespaces of their own.  In the
# background, as a signal to this script must be obeyed at once; when the first
# process of the namespaces is killed, so are all others, and the mounts go with
# the last one.  The functions below are there.
#   in_namespaces FUNCTION [ARGUMENT...]
in_namespaces()
{
	local status=0

	unshare --mount --propagation private --pid --fork --kill-child --ipc --mount-proc \
		bash -euo pipefail -c '"$@"' in_namespaces "$@" </dev/null &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

# Debian's architectures whose programs can be emulated, and QEMU's names for them
declare -A emulated=([arm64]=aarch64 [s390x]=s390x)

# Have the kernel run programs of an architecture by QEMU until the script ends, which
# begins again for that in a mount namespace of its own.  The kernel's entry is this
# run's, so that those of the machine and of other runs stay as they are.  The kernel
# opens QEMU now: roots need no copy of it.
#   emulate ARCHITECTURE [ARGUMENT OF THE SCRIPT...]
emulate()
{
	local entries=/proc/sys/fs/binfmt_misc

	[ "$1" != "$(dpkg --print-architecture)" ] || return 0
	"$root/script/bootstrap" qemu-user-static >/dev/null || return
	[ -n "${own_mounts:-}" ] || own_mounts=yes exec unshare --mount -- "$program" "${@:2}"
	mount -t binfmt_misc none $entries || return
	emulator=$entries/snowflake-$1-$$
	# name, type, offset, magic, mask, interpreter and flags, with colons between
	sed "s/^:[^:]*:/:${emulator##*/}:/" "/usr/lib/binfmt.d/qemu-${emulated[$1]}.conf" >$entries/register && [ -e "$emulator" ]
}

# End what in_namespaces() runs, and remove what it used.
finish()
{
	trap '' HUP INT PIPE TERM
	if [ -n "${child:-}" ]; then
		first=$(cat "/proc/$child/task/$child/children" || true)
		# shellcheck disable=SC2086
		kill -KILL ${first:-$child} || true
		wait "$child" || true
	fi 2>/dev/null
	[ ! -e "${emulator:-}" ] || echo -1 >"$emulator"
	[ -z "${run:-}" ] || rm -rf --one-file-system "$run"
	exit "$1"
}

# The package source of this machine that has all these suites, or else Debian's
# own if that has them.  Uses the directory $run.
#   find_source SUITE...
find_source()
{
	local source suite

	# shellcheck disable=SC2016
	for source in $(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | awk '!seen[$0]++') \
		https://deb.debian.org/debian; do
		for suite in "$@"; do
			/usr/lib/apt/apt-helper download-file "${source%/}/dists/$suite/InRelease" "$run/InRelease" >/dev/null 2>&1 ||
				continue 2
		done
		say "${source%/}"
		return
	done
	return 1
}

# The file systems that programs expect in a root, and the way to the network.
mount_in()
{
	mount -t proc proc "$1/proc"
	# Of its own, as a package's scripts may write there.
	mount -t tmpfs -o mode=755 dev "$1/dev"
	for device in null zero full random urandom tty; do
		: >"$1/dev/$device"
		mount --bind "/dev/$device" "$1/dev/$device"
	done
	mkdir "$1/dev/pts" "$1/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
	ln -s pts/ptmx "$1/dev/ptmx"
	ln -s /proc/self/fd "$1/dev/fd"
	mount -t tmpfs -o mode=1777 shm "$1/dev/shm"
	cat /etc/resolv.conf >"$1/etc/resolv.conf"
	cat /etc/hosts >"$1/etc/hosts"
}

# Run a command in a root that has been mounted.  Not by exec: the first process
# of a namespace is deaf to many signals.
#   inside ROOT COMMAND [ARGUMENT...]
inside()
{
	chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root LANG=C.UTF-8 TZ=UTC DEBIAN_FRONTEND=noninteractive "${@:2}"
}

# Make a root, of $architecture if that is set, mount it, and fetch its lists of
# packages.  Packages that are installed there start no service and make no cluster.
#   make_root DIRECTORY SOURCE SUITE [SUITE ON TOP, PACKAGES FROM THERE]
make_root()
{
	local dir=$1 source=$2 suite=$3 top=${4:-} script=/usr/share/debootstrap/scripts/$3

	# An older debootstrap does not know the newer releases.
	[ -e "$script" ] || script=${script%/*}/sid
	debootstrap ${architecture:+--arch="$architecture"} --variant=minbase --keyring="$keyring" \
		"$suite" "$dir" "$source" "$script"
	mount_in "$dir"

	# How this machine's apt gets at its sources: proxies, and whether an old
	# copy of them will do.
	apt-config dump --format '%f "%v";%n' Acquire | grep -v '^Acquire::IndexTargets' \
		>"$dir/etc/apt/apt.conf.d/50machine"
	if [ -n "$top" ]; then
		echo "deb $source $top main" >>"$dir/etc/apt/sources.list"
		# Of its packages, apt takes none that it is not told to.
		printf '%s\n' "Package: $5" "Pin: release a=$top" 'Pin-Priority: 990' >"$dir/etc/apt/preferences.d/top"
	fi
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod +x "$dir/usr/sbin/policy-rc.d"
	mkdir -p "$dir/etc/postgresql-common/createcluster.d"
	echo 'create_main_cluster = false' >"$dir/etc/postgresql-common/createcluster.d/none.conf"
	inside "$dir" apt-get -q update
}

# Do something in a root, and say how long it took.
#   in_root COMMAND ROOT [ARGUMENT...]
in_root()
{
	SECONDS=0
	in_namespaces "$@" >"$run/log" 2>&1 ||
		{ grep -A 20 '^NOT OK' "$run/log"; tail -n 100 "$run/log"; die "failed: $1 ${*:3}"; } >&2
	say "ok  $1 ${*:3}: $SECONDS s"
}

# Install the program that makes roots, if it is missing.  script/bootstrap would also
# install PostgreSQL, which only the root needs.
get_debootstrap()
{
	{ command -v debootstrap && [ -e "$keyring" ]; } >/dev/null ||
		"$root/script/bootstrap" debootstrap debian-archive-keyring >&2
}

# Make a root in which nothing is installed.
#   make_minimal_root DIRECTORY SUITE
make_minimal_root()
{
	local source

	get_debootstrap || die "debootstrap could not be installed"
	source=$(find_source "$2") || die "no package source that can be reached has Debian's $2"
	in_root make_root "$1" "$source" "$2"
}

export -f mount_in inside make_root copy_sources
export root keyring
