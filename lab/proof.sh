# lab/proof.sh
#	  What lab/soak and lab/power share: their arguments, copies of the
#	  extension that lack a rule, and files that are kept after a fault.
#	  Sourced, not run.

# shellcheck shell=bash disable=SC2034 source-path=SCRIPTDIR/..
. "$(dirname "$0")/../script/lib/common.sh"

# Commands of sed that take a rule out of the sources.
declare -A rules=(
	[first-touch]='s/!log_cnt_is_valid(seq, page)/false/'
	[flush]='s/XLogFlush(lsn);/(void) lsn;/'
	[standbys]='s/if (unlikely(StandbysDefined()) && SyncRepRequested())/if (false)/')

# Set "without", "minutes" and "seed".
#   read_arguments RULES [ARGUMENT...]		RULES is what --without takes, a regular expression
read_arguments()
{
	local arguments=${*:2} known=$1

	shift
	without=
	[[ ${1:-} != -h && ${1:-} != --help ]] || usage 0
	if [ "${1:-}" = --without ]; then
		without=${2:-}
		[[ $without =~ ^($known)$ ]] || unknown "$arguments"
		shift 2
	fi
	minutes=${1:-10}
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

keep=
finish()
{
	trap '' HUP INT PIPE TERM
	set +e
	if [ -n "$keep" ]; then
		end_processes
		say "The files are in $work"
	else
		clean_up
	fi
	exit "$1"
}

fail() { keep=yes; die "$*"; }

# Say the totals in one line.
#   say_totals NAME COUNT [NAME COUNT...]	what happened during the run
say_totals()
{
	awk -v start="totals${without:+ without $without}: seed $seed minutes $minutes $*" '
		/^IDs received/ { ids = $3 }
		/^duplicates  / { duplicates = $2 }
		/^[a-z].*  [0-9]+$/ { faults += $NF }
		/^nextval\(\)/ { taken += $3; repeated += $5 }
		END {
			print start, "ids", ids + 0, "duplicates", duplicates + 0, "other faults", faults - duplicates \
				(taken ? " nextval " taken " repeated " repeated : "")
		}' "$work/report"
}

# End with the verdict.  A run without a rule passes if the ledger shows
# duplicates, and any other run if it shows no fault.
#   judge ENDED GOOD	whether the run came to its end, and found no fault
judge()
{
	if [ -n "$without" ] && { [ -z "$1" ] || ! grep -q '^duplicates  .*[1-9]' "$work/report"; }; then
		fail "the ledger shows no duplicates without $without"
	elif [ -n "$without" ]; then
		say "the ledger shows the fault"
	elif [ -z "$1" ] || [ -z "$2" ]; then
		fail "FAILED, seed $seed"
	else
		say "passed"
	fi
}
