# lab/proof.sh
#	  What lab/soak, lab/power, lab/patroni, lab/commands and lab/remedies share: their
#	  arguments, copies of the extension that lack a rule, the verdict, and files that are
#	  kept after a fault.  Sourced, not run.

# shellcheck shell=bash disable=SC2034 source-path=SCRIPTDIR
. "$(dirname "$0")/../script/lib/common.sh"

# "ahead" and next_id_seq begin half a day ahead of the clock, whose own progress
# would hide a fault.  "near" begins at the clock.  "dense" logs a record for
# every 1,024 IDs.
sequences='ahead,near,next_id_seq,dense=timestamp:41 shard:13 sequence:10 epoch:1314220021721 tick:1s'
setup_sql="CREATE EXTENSION snowflake;
	CREATE TABLE ledger_rows (id bigint);
	CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
	CREATE SEQUENCE near MAXVALUE 1125899906841599;
	CREATE SEQUENCE dense;
	SELECT snowflake_alter_sequence('dense', '${sequences#*=}');
	SELECT setval(s, (snowflake_min_id(now() + interval '12 hours') >> 23) * 1024)
	FROM unnest('{ahead,next_id_seq}'::regclass[]) s"

# Commands of sed that take a rule out of the sources.
declare -A rules=(
	[lock]='s/page_lock(seq, BUFFER_LOCK_EXCLUSIVE)/page_lock(seq, BUFFER_LOCK_SHARE)/'
	[record]='s/covered = log_values(seq, spec, data, last);/covered = last;/'
	[covered]='s/data->last_value = covered;/data->last_value = last;/'
	[first-touch]='s/!log_cnt_is_valid(seq, page)/false/'
	[flush]='s/XLogFlush(lsn);/(void) lsn;/'
	[others]='s/^\twait_until_durable(lsn);/\tif (lsn == seq->record_lsn)\n\t&/'
	[redo]='s/PageGetLSN(page) <= GetRedoRecPtr()/false/'
	[standbys]='s/if (unlikely(standbys_defined()) && SyncRepRequested())/if (false)/')

# Set "without", "mode", "minutes" and "seed".
#   read_arguments MINUTES RULES MODES [ARGUMENT...]	RULES and MODES are regular expressions
read_arguments()
{
	local arguments=${*:4} rules=$2 modes=$3

	minutes=$1 without='' mode=''
	shift 3
	[[ ${1:-} != -h && ${1:-} != --help ]] || usage 0
	if [ "${1:-}" = --without ]; then
		without=${2:-}
		[[ $without =~ ^($rules)$ ]] || unknown "$arguments"
		shift 2
	elif [[ -n $modes && ${1:-} =~ ^($modes)$ ]]; then
		mode=$1
		shift
	fi
	minutes=${1:-$minutes}
	seed=${2:-$RANDOM}
	[[ $# -le 2 && $minutes =~ ^[1-9][0-9]{0,4}$ && $seed =~ ^[0-9]{1,9}$ ]] || unknown "$arguments"
}

# Take the rule out of the copied sources, if it is one of the sources.
change_sources()
{
	[ -n "${rules[${without:-none}]:-}" ] || return 0
	as_user sh -c 'sed -i "$1" src/src/*.c' sh "${rules[$without]}"
	! cat "$root"/src/*.c | cmp -s - <(cat "$work"/src/src/*.c) || die "the sources have no such rule"
}

# Make $work the current directory, with the build, and the clients as "ledger".
#   prepare [PACKAGE...]
prepare()
{
	setup "$@"
	cd "$work"
	build
	as_user sh -c 'cc -O2 -Wall -Wextra -I"$1" src/test/ledger/*.c -L"$2" -lpq -o ledger' sh \
		"$("$PG_CONFIG" --includedir)" "$("$PG_CONFIG" --libdir)"
}

say_begin()
{
	say "$self: $minutes minutes, seed $seed; again with: lab/$self ${without:+--without $without }${mode:+$mode }$minutes $seed"
	say "$("$bindir/postgres" --version), in $work"
	begun=$SECONDS
}

fail()
{
	keep=yes
	say "The files are in $work"
	die "$*"
}

# Report what the ledgers show and what happened, and end with the verdict.  A run
# without a rule passes if the ledgers show duplicates, and any other if no fault.
#   judge ENDED EVENTS ARGUMENT...	ENDED, if the run came to its end; arguments for "ledger check"
judge()
{
	local ended=$1 good=

	! as_user ./ledger check "${@:3}" >report 2>&1 || good=yes
	cat report
	say "$2, $((SECONDS - begun)) s"
	if [ -z "$ended" ]; then
		fail "FAILED, seed $seed: a program or a server failed"
	elif [ -n "$without" ]; then
		grep -q '^duplicates  .*[1-9]' report || fail "the ledger shows no duplicates without $without"
		say "the ledger shows the fault"
	elif [ -z "$good" ]; then
		fail "FAILED, seed $seed"
	else
		say "passed"
	fi
}

# Run rounds for the time that was asked for, by the program "run" of this one's modules, and end
# with the verdict.  That program exits with 1 after a fault, and with 2 if it failed itself.
#   run_rounds MISSED	MISSED is what to say if no fault shows without a rule
run_rounds()
{
	local status=0 top

	setup libipc-run-perl libdbd-pg-perl
	cd "$work"
	build
	top=$(dirname "$("$PG_CONFIG" --pgxs)")/../..
	say_begin
	PERL5LIB=$top/src/test/perl PG_REGRESS=$top/src/test/regress/pg_regress PATH=$bindir:$PATH PGPORT=65432 \
		TEMP_CONFIG=$work/server.conf DESTDIR=$destdir TESTDATADIR=$work/tmp_check TESTLOGDIR=$work/log \
		apart as_user perl "src/lab/$self.d/run" $((minutes * 60)) "$seed" "$without"
	wait "$job" || status=$?
	if [ "$status" -gt 1 ]; then
		fail "FAILED, seed $seed: a program failed"
	elif [ -n "$without" ]; then
		[ "$status" = 1 ] || fail "$1 without $without"
		say "the ledger shows the fault"
	elif [ "$status" = 1 ]; then
		fail "FAILED, seed $seed"
	else
		say "passed"
	fi
}
