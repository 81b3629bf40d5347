/*
 * generator.pml
 *	  A model of generator.c for SPIN, which tries every order of the steps
 *	  below, with a crash after any of them.  lab/model runs it.
 *
 * Two backends take values from one sequence.  Their steps are those of
 * lock_page_to_change(), put_value() and log_values() in generator.c and of
 * wait_until_durable() in wait.c.  Comments in generator.c name the steps.
 *
 * The clock stands still, so a value is always the last one plus one, and only
 * the sequence can keep values apart.  An LSN is the number of the sequence's
 * records up to there.
 *
 * Files have no numbers.  So the model does not show what happens when the
 * server gives a number out again.  test/t/crash_new_file.pl and
 * crash_stale_note.pl do.
 *
 * -DSETTING= chooses one of four settings:
 *
 * - COPIES: once, the sequence gets another file, as by SET LOGGED or CREATE
 *   DATABASE, with or without WAL, or an image of its page is logged.
 * - MINIMAL: wal_level = minimal, and backend 1 uses the sequence in the
 *   transaction that makes it.
 * - STANDBYS: synchronous_standby_names names s1, later s2, and one promotion.
 *   A WAL sender may read the setting at any time after it has changed; until
 *   then, it does not run.
 * - ADVANCE: once, backend 2 calls snowflake_advance() with an ID that the
 *   sequence is beyond already.  Such a call puts the last value on the page
 *   again, and when it returns, it promises that all later values are larger.
 *   A call with an ID ahead of the sequence takes a value, as next_id() does.
 */
#define COPIES		1
#define MINIMAL		2
#define STANDBYS	3
#define ADVANCE		4

/* -DOMIT= leaves out one of the rules.  lab/model reads this list. */
#define NOTHING			0
#define DIRTY_FIRST		1	/* COPIES twice: mark the page dirty before looking at the redo pointer */
#define REDO_CHECK		2	/* COPIES twice: log if a checkpoint began after the page's last record */
#define REDO_EQUAL		3	/* COPIES torn: log also if it began at the very end of that record */
#define NOTE			4	/* COPIES twice: log unless the page has a note of a record */
#define LOG_COVERED		5	/* COPIES twice: write a record of what is covered */
#define LOG_AHEAD		6	/* COPIES twice: log the last covered value, not the one that was taken */
#define FLUSH_FIRST		7	/* COPIES twice: flush the record before a value goes out */
#define FLUSH_OTHERS	8	/* COPIES order: flush it also if another backend has inserted it */
#define MINIMAL_COUNT	9	/* MINIMAL twice: count no value as covered while the file has no WAL, nor trust such a count */
#define STANDBY_WAIT	10	/* STANDBYS twice: wait for the synchronous standby */
#define SYNC_NOW		11	/* STANDBYS twice: ask the standby that is synchronous now, not WalSndCtl->lsn[] */
#define ASK_AGAIN		12	/* STANDBYS twice: ask at each call, and remember no acknowledgement */
#define NOTE_LSN		13	/* COPIES twice: the note must be of the record whose LSN the page has */
#define NOTE_FILE		14	/* COPIES twice: the note must be of the page's own file */
#define ADVANCE_FLUSH	15	/* ADVANCE order: flush the record of another backend also before an advance returns */
#define PRIORITIES		16	/* STANDBYS twice: go by the priorities of standbys only if they agree with the setting */

#ifndef SETTING
#define SETTING COPIES
#endif
#ifndef OMIT
#define OMIT NOTHING
#endif
#ifndef LAST					/* the sequence's MAXVALUE */
#if SETTING == STANDBYS
#define LAST 3
#else
#define LAST 4
#endif
#endif
/* How many values beyond the one that is taken a record covers. */
#define AHEAD 1
/* The setting names s1 in turn 1, s2 in turn 2, and s1 in turn 3. */
#ifndef TURNS
#define TURNS 2
#endif

#define keeps(rule)			(OMIT != rule)
#define new_last			(page.last + 1 - advances[me])
#define last_covered		(new_last + AHEAD < LAST -> new_last + AHEAD : LAST)
#define copy(to, from) \
	to.last = from.last; to.count = from.count; to.lsn = from.lsn; to.note = from.note; to.foreign = from.foreign
#define set(to, l, c, n)	to.last = l; to.count = c; to.lsn = n; to.note = 0; to.foreign = false
#define differ(a, b)		(a.last != b.last || a.count != b.count || a.lsn != b.lsn || a.note != b.note)

/* The sequence's page in shared buffers, in its file, and on disk */
typedef Page
{
	byte last;				/* last_value; 0 before the first call */
	byte count;				/* log_cnt: number of covered values after it */
	byte lsn;
	byte note;				/* the LSN in the page's RecordNote, or 0 */
	bool foreign			/* and whether it names another file */
};
#define TORN	255			/* LSN of a page of which half is written */
Page page, file, disk;
bool dirty, locked;
bool needs_wal = (SETTING != MINIMAL);

/* The WAL.  The record with the number n ends at LSN n. */
#define RECORDS (LAST + 3)
byte wal_last[RECORDS], wal_count[RECORDS];
byte inserted, flushed;
byte others;				/* the first so many records are of another file */
byte image, image_note;		/* the LSN of the page's image, and the note in it */

/* The server, and the steps of a checkpoint. */
mtype = { RUNNING, CRASHED, RECOVERING, DAMAGED };
mtype server = RUNNING;
byte replayed;
mtype = { BEGIN, PUBLISH, SCAN, WRITE, COMPLETE };
mtype checkpoint = BEGIN;
byte redo;					/* XLogCtl->Insert.RedoRecPtr */
byte redo_seen;				/* XLogCtl->RedoRecPtr, see GetRedoRecPtr() */
byte redo_on_disk;			/* that of the last complete checkpoint */
bool needed;				/* the page is BM_CHECKPOINT_NEEDED */
bool copied;

/* The backends: the next step of each. */
#define me (1 - _pid)		/* so that schedules begin with backend 1 */
mtype = { LOCK, LOOK, INSERT, RESTORE, TAKE, FLUSH, WAIT, RETURN };
mtype step[2] = LOCK;
bool advances[2];			/* the call takes no value, see ADVANCE */
bool advanced;
byte value[2], lsn[2];
byte acknowledged[2];		/* for ASK_AGAIN */

byte returned;				/* the set of values that were returned */
byte promised;				/* all later values must be larger; 0 if that follows */
bool late[2];				/* as large a value was returned or promised before the call */

byte turn = 1;
#define synchronous			((turn + 1) % 2)
byte received[2];			/* up to which LSN s1 and s2 have the WAL */
bool named[2];				/* whether the setting names s1, s2, as its WAL sender has read it */
byte released;				/* WalSndCtl->lsn[], for SYNC_NOW */
bool in_turn[2];			/* the call began in this turn */
byte owed;					/* values of calls that ran within this turn */
bool promoted;

/* -DCHECK= takes one of these errors, for a search that looks for no other. */
#define twice	1
#define order	2
#define torn	4
#ifndef CHECK
#define CHECK (twice | order | torn)
#endif
#define fails(error, condition, ...) \
	if \
	:: (CHECK & error) && (condition) -> printf(__VA_ARGS__); assert(false) \
	:: else \
	fi

#define inserts(l, c) \
	inserted++; wal_last[inserted] = l; wal_count[inserted] = c

#define flush(upto)			flushed = (upto > flushed -> upto : flushed)

inline forget(who)
{
	step[who] = LOCK; value[who] = 0; lsn[who] = 0; late[who] = false; in_turn[who] = false; advances[who] = false
}

inline unlock()
{
	value[me] = page.last;
	lsn[me] = page.lsn;
	printf("backend %d: unlocks the page with value %d, which needs the WAL up to LSN %d\n", me + 1, value[me], lsn[me]);
	locked = false
}

#define is_noted \
	((page.note != 0 && (page.note == page.lsn || !keeps(NOTE_LSN)) && (!page.foreign || !keeps(NOTE_FILE))) || \
	 !keeps(NOTE) || !keeps(MINIMAL_COUNT))
#define must_log \
	(needs_wal && ((page.count == 0 && !advances[me]) || \
	 !is_noted || \
	 (page.lsn < redo_seen && keeps(REDO_CHECK)) || \
	 (page.lsn == redo_seen && keeps(REDO_CHECK) && keeps(REDO_EQUAL))))

/*
 * A backend that began its call in this turn has read the setting, and goes by
 * the priorities if they agree with it.  Otherwise it waits as a commit does,
 * which only a WAL sender that runs can end.
 */
#define agree			(named[synchronous] && !named[1 - synchronous])
#define has_it(s)		(lsn[me] <= received[s])
#define priorities_say	((named[0] && has_it(0)) || (named[1] && has_it(1)))
#define may_return \
	((in_turn[me] && (agree || !keeps(PRIORITIES)) -> priorities_say : has_it(synchronous)) || \
	 (lsn[me] <= released && !keeps(SYNC_NOW)) || \
	 (lsn[me] <= acknowledged[me] && !keeps(ASK_AGAIN)))

#define may_lock \
	(step[me] == LOCK && server == RUNNING && !locked && page.last < LAST && (needs_wal || me == 0))

active [2] proctype backend()
{
end: do
	/* take_values(): a call counts as begun when it has the lock. */
	:: atomic { may_lock ->
		locked = true;
		late[me] = (returned >> (page.last + 1)) != 0 || page.last < promised;
		in_turn[me] = (SETTING == STANDBYS);
		dirty = dirty || keeps(DIRTY_FIRST);
		step[me] = LOOK;
		printf("backend %d: locks the page: last value %d, covered up to %d, LSN %d\n",
			me + 1, page.last, page.last + page.count, page.lsn)
		}
#if SETTING == ADVANCE
	/* generator_advance() */
	:: atomic { may_lock && me == 1 && page.last > 0 && !advanced ->
		locked = true;
		advances[me] = true;
		advanced = true;
		dirty = true;
		step[me] = LOOK;
		printf("backend %d: locks the page to advance: last value %d, covered up to %d, LSN %d\n",
			me + 1, page.last, page.last + page.count, page.lsn)
		}
	:: atomic { step[me] == RETURN && advances[me] ->
		printf("backend %d: promises that later values are larger than %d\n", me + 1, value[me]);
		promised = (returned >> value[me] -> 0 : value[me]);
		forget(me)
		}
#endif

	/* put_value() */
	:: atomic { step[me] == LOOK ->
		step[me] = (must_log -> INSERT : TAKE);
		printf("backend %d: looks at the redo pointer, which is at LSN %d\n", me + 1, redo_seen)
		}
	:: atomic { step[me] == INSERT ->
		dirty = dirty || !keeps(DIRTY_FIRST);
#if keeps(LOG_COVERED)
		inserts((keeps(LOG_AHEAD) -> last_covered : new_last), 0);
		printf("backend %d: inserts the record at LSN %d: last value %d\n",
			me + 1, inserted, wal_last[inserted]);
#endif
		step[me] = RESTORE
		}
	:: atomic { step[me] == RESTORE ->
#if keeps(LOG_COVERED)
		page.lsn = inserted;
		page.note = inserted;
		page.foreign = false;
#endif
		page.count = last_covered - new_last;
		page.last = new_last;
		unlock();
		step[me] = (keeps(FLUSH_FIRST) -> FLUSH : RETURN)
		}
	:: atomic { step[me] == TAKE ->
		dirty = dirty || !keeps(DIRTY_FIRST);
		page.count = (needs_wal -> page.last + page.count - new_last : (keeps(MINIMAL_COUNT) -> 0 : last_covered - new_last));
		page.last = new_last;
		unlock();
		step[me] = (keeps(FLUSH_FIRST) && keeps(FLUSH_OTHERS) && (keeps(ADVANCE_FLUSH) || !advances[me]) -> FLUSH : RETURN)
		}

	/* wait_until_durable() */
	:: atomic { step[me] == FLUSH ->
		flush(lsn[me]);
		step[me] = (SETTING == STANDBYS && !promoted && keeps(STANDBY_WAIT) -> WAIT : RETURN);
		printf("backend %d: has the WAL flushed up to LSN %d\n", me + 1, flushed)
		}
#if SETTING == STANDBYS
	:: atomic { step[me] == WAIT && may_return ->
		acknowledged[me] = (keeps(ASK_AGAIN) -> 0 : lsn[me]);
		step[me] = RETURN;
		printf("backend %d: stops waiting for LSN %d; s%d, which is synchronous, has the WAL up to LSN %d\n",
			me + 1, lsn[me], synchronous + 1, received[synchronous])
		}
	:: atomic { step[me] == WAIT && !may_return ->
		printf("backend %d: is cancelled while it waits for a standby\n", me + 1);
		forget(me)
		}
#endif
	:: atomic { step[me] == RETURN && !advances[me] ->
		printf("backend %d: returns value %d\n", me + 1, value[me]);
		fails(twice, returned & (1 << value[me]), "error: value %d is returned twice\n", value[me]);
		fails(order, late[me],
			"error: value %d is out of order: the call began after one as large had been returned or promised\n", value[me]);
		returned = returned | (1 << value[me]);
		promised = (returned >> promised -> 0 : promised);
		owed = (in_turn[me] -> owed | (1 << value[me]) : owed);
		forget(me)
		}
	od
}

inline write_page()
{
	flush(page.lsn);
	copy(file, page);
	dirty = false;
	needed = false;
	printf("buffer manager: writes the page: last value %d, covered up to %d, LSN %d\n",
		page.last, page.last + page.count, page.lsn)
}

/* A backend or the background writer writes the page, and the kernel later. */
active proctype storage()
{
end: do
	:: atomic { dirty && !locked -> write_page() }
	:: atomic { disk.lsn != TORN && differ(disk, file) ->
		set(disk, 0, 0, TORN);
		printf("kernel: begins to put the page on disk\n")
		}
	:: atomic { disk.lsn == TORN && file.lsn != TORN ->
		copy(disk, file);
		printf("kernel: has put the page on disk\n")
		}
	od
}

/* CreateCheckPoint() and BufferSync() */
active proctype checkpointer()
{
end: do
	:: atomic { checkpoint == BEGIN && server == RUNNING ->
		redo = inserted;
		checkpoint = PUBLISH;
		printf("checkpointer: begins a checkpoint, with the redo pointer at LSN %d\n", redo)
		}
	:: atomic { checkpoint == PUBLISH ->
		redo_seen = redo;
		checkpoint = SCAN;
		printf("checkpointer: shows the redo pointer to the backends\n")
		}
	:: atomic { checkpoint == SCAN ->
		needed = dirty;
		checkpoint = (needed -> WRITE : COMPLETE);
		printf("checkpointer: looks whether the page is dirty: %d\n", needed)
		}
	:: atomic { checkpoint == WRITE && !(needed && locked) ->
		if
		:: needed -> write_page()
		:: else
		fi;
		checkpoint = COMPLETE
		}
	:: atomic { checkpoint == COMPLETE ->
		copy(disk, file);
		flushed = inserted;
		redo_on_disk = redo;
		redo = 0;
		checkpoint = BEGIN;
		printf("checkpointer: completes the checkpoint\n")
		}
	od
}

inline read_setting(s)		/* a WAL sender */
{
	named[s] = (SETTING == STANDBYS && !promoted && synchronous == s)
}

inline drop_record()
{
	wal_last[inserted] = 0; wal_count[inserted] = 0;
	inserted--
}

/* A crash keeps any number of records that were not flushed. */
active proctype startup()
{
end: do
	:: atomic { server != CRASHED && needs_wal ->
		printf("crash: on disk are the WAL up to LSN %d, and the page with last value %d, LSN %d\n",
			flushed, disk.last, disk.lsn);
		forget(0); forget(1);
		acknowledged[0] = 0; acknowledged[1] = 0;
		set(page, 0, 0, 0);
		copy(file, disk);
		dirty = false; needed = false; locked = false;
		checkpoint = BEGIN; redo = 0; redo_seen = 0; replayed = 0; released = 0;
		read_setting(0); read_setting(1);
		server = CRASHED
		}
	:: atomic { server == CRASHED && inserted > flushed ->
		printf("crash: the record at LSN %d is lost\n", inserted);
		drop_record()
		}
	:: atomic { server == CRASHED ->
		flushed = inserted;
		copy(page, disk);
		redo_seen = redo_on_disk;
		replayed = redo_on_disk;
		server = RECOVERING;
		printf("recovery: starts at LSN %d\n", replayed)
		}
	:: atomic { server == RECOVERING && replayed < inserted && replayed >= others ->
		replayed++;
		set(page, wal_last[replayed], wal_count[replayed], replayed);
		page.note = (replayed == image -> image_note : 0);
		dirty = true;
		printf("recovery: replays the record at LSN %d: last value %d\n", replayed, page.last)
		}
#if SETTING == COPIES
	:: atomic { server == RECOVERING && replayed < others ->
		replayed++;
		printf("recovery: replays the record at LSN %d, which is of another file\n", replayed)
		}
#endif
	:: atomic { server == RECOVERING && replayed == inserted ->
		replayed = 0;
		server = (page.lsn == TORN -> DAMAGED : RUNNING);
		printf("recovery: ends with last value %d\n", page.last);
		fails(torn, page.lsn == TORN, "error: recovery leaves a torn page\n")
		}
	od
}

#define no_call		(step[0] == LOCK && step[1] == LOCK && server == RUNNING)

#if SETTING == COPIES
/*
 * The sequence gets another file.  The new file gets last_value and log_cnt as
 * they are, and one record with both.  Or the page is copied to another file
 * as it is, without a record, and the copy put on disk.  Or an image of the
 * page is logged, which leaves the note on it.
 */
active proctype owner()
{
end: do
	:: atomic { no_call && !copied ->
		copied = true;
		inserts(page.last, page.count);
		set(page, page.last, page.count, inserted);
		flushed = inserted; dirty = true;
		printf("owner: gives the sequence another file, by the record at LSN %d: last value %d, as if covered up to %d\n",
			inserted, page.last, page.last + page.count)
		}
	:: atomic { no_call && !copied ->
		copied = true;
		others = inserted; flushed = inserted;
		page.foreign = true;
		write_page();
		copy(disk, file);
		printf("owner: copies the page to another file on disk, without WAL: last value %d, as if covered up to %d, LSN %d\n",
			page.last, page.last + page.count, page.lsn)
		}
	:: atomic { no_call && !copied ->
		copied = true;
		inserts(page.last, page.count);
		image = inserted; image_note = page.note;
		page.lsn = inserted; flushed = inserted; dirty = true;
		printf("owner: logs an image of the page, by the record at LSN %d: last value %d, as if covered up to %d\n",
			inserted, page.last, page.last + page.count)
		}
	od
}
#elif SETTING == MINIMAL
/* A commit logs the page of a file that has no WAL, or writes it. */
active proctype owner()
{
end: do
	:: atomic { no_call && !needs_wal ->
		needs_wal = true;
		inserts(page.last, page.count);
		page.lsn = inserted; flushed = inserted; dirty = true;
		printf("owner: commits, with the record at LSN %d: last value %d, as if covered up to %d\n",
			inserted, page.last, page.last + page.count)
		}
	:: atomic { no_call && !needs_wal ->
		needs_wal = true;
		write_page();
		copy(disk, file);
		printf("owner: commits, with the page on disk\n")
		}
	od
}
#elif SETTING == STANDBYS
#define receives(s)	(server == RUNNING && !promoted && received[s] < flushed)

#define misses_change(s)	(server == RUNNING && !promoted && named[s] != (synchronous == s))

inline receive(s)
{
	received[s]++;
	released = (!keeps(SYNC_NOW) && received[s] > released && synchronous == s -> received[s] : released);
	printf("s%d: has the WAL up to LSN %d\n", s + 1, received[s])
}

active proctype standbys()
{
end: do
	:: atomic { receives(0) && synchronous == 0 -> receive(0) }
	:: atomic { receives(1) -> receive(1) }
	:: atomic { server == RUNNING && !promoted && turn < TURNS ->
		turn++;
		in_turn[0] = false; in_turn[1] = false; owed = 0;
		printf("s%d: is named as the synchronous standby, with the WAL up to LSN %d\n",
			synchronous + 1, received[synchronous])
		}
	:: atomic { misses_change(0) -> read_setting(0); printf("s1: its WAL sender reads the setting\n") }
	:: atomic { misses_change(1) -> read_setting(1); printf("s2: its WAL sender reads the setting\n") }
#if TURNS > 2
	:: atomic { server == RUNNING && !promoted && received[0] > 0 && synchronous == 1 ->
		received[0]--;
		read_setting(0);
		printf("s1: is restored from an older copy, with the WAL up to LSN %d\n", received[0])
		}
#endif
	:: atomic { server == CRASHED && !promoted ->
		printf("promotion: s%d takes over, with the WAL up to LSN %d\n",
			synchronous + 1, received[synchronous]);
		do
		:: inserted > received[synchronous] -> drop_record()
		:: else -> break
		od;
		flushed = inserted;
		set(page, 0, 0, 0); copy(file, page); copy(disk, page);
		redo_on_disk = 0;
		server = RECOVERING;
		returned = owed;
		promoted = true; turn = 1; owed = 0; received[0] = 0; received[1] = 0;
		named[0] = false; named[1] = false
		}
	od
}
#endif
