/*-------------------------------------------------------------------------
 *
 * sequence_functions.c
 *	  SQL functions that look at sequences and change them.
 *
 * This file knows neither how a sequence's page is written nor where in an ID
 * a bit is.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"

#include "arguments.h"
#include "generator.h"
#include "layout_type.h"
#include "page.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_sequences);
PG_FUNCTION_INFO_V1(snowflake_alter_sequence);
PG_FUNCTION_INFO_V1(snowflake_advance);

/* The columns of snowflake_sequences() */
enum
{
	COLUMN_SEQUENCE,
	COLUMN_LAYOUT,
	COLUMN_LAST_TIMESTAMP,
	COLUMN_LEAD,
	COLUMN_EXPIRES,
	COLUMN_STATE,
	COLUMNS
};

/*
 * generator_state(), or NULL if the sequence has been dropped.
 *
 * An error that is the fault of one sequence must not make
 * snowflake_sequences() fail.  So such an error becomes a state, and a
 * subtransaction cleans up after it.  Other errors come from the server or the
 * session, for example a cancel, a lack of memory or trouble with a disk, and
 * are raised again.
 */
static const char *
state_without_error(Oid sequence, const GeneratorSpec *spec, FormData_pg_sequence_data *data)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	SettingsLimits limits = settings_limits();
	const char *volatile state = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);

	PG_TRY();
	{
		state = generator_state(sequence, spec, &limits, data);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();

		switch (error->sqlerrcode)
		{
			case ERRCODE_UNDEFINED_TABLE:
				break;
			case ERRCODE_INSUFFICIENT_PRIVILEGE:
				state = "no privilege";
				break;
			case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
			case ERRCODE_WRONG_OBJECT_TYPE:
			case ERRCODE_UNDEFINED_FILE:
			case ERRCODE_DATA_CORRUPTED:
				state = "refuses";
				break;
			default:
				ReThrowError(error);
		}
	}
	PG_END_TRY();

	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return state;
}

/*
 * snowflake_sequences(sequence [, layout]): a row with the sequence's status, or
 * none if the sequence has been dropped
 */
Datum
snowflake_sequences(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			sequence = PG_GETARG_OID(0);
	const Layout *layout = PG_NARGS() > 1 ?
		layout_type_argument(fcinfo, 1) :
		layout_type_find_served(sequence_read_max_value(sequence));
	FormData_pg_sequence_data data = {0};
	const char *state;
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS] = {false};

	InitMaterializedSRF(fcinfo, 0);

	state = state_without_error(sequence, &layout->spec, &data);
	if (state == NULL)
		return (Datum) 0;

	values[COLUMN_SEQUENCE] = ObjectIdGetDatum(sequence);

	if (layout->spec.layout != NULL)
		values[COLUMN_LAYOUT] = CStringGetTextDatum(layout->text);
	else
		nulls[COLUMN_LAYOUT] = true;

	if (data.is_called && layout->has_clock)
	{
		const GeneratorSpec *spec = &layout->spec;
		TimestampTz last = spec->epoch + data.last_value / spec->slots * spec->tick_usecs;
		TimestampTz now = GetCurrentTimestamp();

		values[COLUMN_LAST_TIMESTAMP] = TimestampTzGetDatum(last);
		values[COLUMN_LEAD] = DirectFunctionCall2(timestamp_mi,
												  TimestampTzGetDatum(Max(last, now)),
												  TimestampTzGetDatum(now));
	}
	else
	{
		nulls[COLUMN_LAST_TIMESTAMP] = true;
		nulls[COLUMN_LEAD] = true;
	}

	if (layout->has_time)
		values[COLUMN_EXPIRES] = TimestampTzGetDatum(layout_end_time(layout));
	else
		nulls[COLUMN_EXPIRES] = true;

	values[COLUMN_STATE] = CStringGetTextDatum(state);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

/* Raise an error about a sequence that cannot be made to serve a layout. */
pg_noreturn static void
refuse_layout(Oid sequence, const Layout *layout, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make sequence \"%s\" serve layout \"%s\"",
					get_rel_name(sequence), layout->text),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/*
 * A hint about a sequence whose last value is too large for a counter of rows.
 *
 * It may have generated IDs of this layout, until a schema tool took its
 * MAXVALUE.
 * Then it gets its MAXVALUE back by ALTER SEQUENCE, but only if its IDs tell
 * that they are of this layout.
 */
static char *
hint_for_used_sequence(const char *qualified_name, const Layout *layout)
{
	char	   *condition;

	if (layout->has_time)
		condition = psprintf("snowflake_timestamp(max(id), %s) of its tables shows when the last one was generated",
							 quote_literal_cstr(layout->text));
	else
		condition = psprintf("they are of layout \"%s\"", layout->text);

	return psprintf("Use a new sequence, with a new shard if the table has IDs already. If this one generated IDs until something changed its MAXVALUE, SELECT * FROM snowflake_check(), of extension snowflake_admin, shows their layout. Use ALTER SEQUENCE %s MAXVALUE %lld only if %s.",
					qualified_name, (long long) layout->spec.max_value, condition);
}

/*
 * Raise an error unless values of the layout may follow the sequence's last
 * value.  They may if the sequence has the layout's MAXVALUE already.  They
 * may also follow a counter of rows, because that is a small number, which the
 * clock has passed or soon will.  A sequence that has never been called has
 * generated no IDs, so it may start anywhere in the layout's range, even where
 * IDs are ahead of the clock.  But if the sequence has been used for another
 * layout, its last value is a time counted from another epoch or in other
 * ticks, and may be years ahead of the clock in this layout.
 */
static void
check_last_value(Oid sequence, const char *qualified_name, const Layout *layout, int64 max_value)
{
	FormData_pg_sequence_data data;

	if (max_value == layout->spec.max_value)
		return;

	data = page_read_unchecked(sequence_find(sequence));
	if (data.is_called && data.last_value >= SEQUENCE_COUNTER_LIMIT)
		refuse_layout(sequence, layout,
					  psprintf("Its last value %lld is too large for a counter of rows, so the sequence may have been used for another layout.",
							   (long long) data.last_value),
					  hint_for_used_sequence(qualified_name, layout));

	if (data.last_value < 0 || data.last_value > layout->spec.max_value)
		refuse_layout(sequence, layout,
					  psprintf("Its last value is %lld, and the values of the layout are 0 to %lld.",
							   (long long) data.last_value, (long long) layout->spec.max_value),
					  "Use a new sequence, with a new shard if the table has IDs already.");
}

/*
 * snowflake_alter_sequence(sequence, layout): let a sequence serve a layout
 *
 * Not strict, because a call with a NULL would look as if it had succeeded.
 */
Datum
snowflake_alter_sequence(PG_FUNCTION_ARGS)
{
	const Layout *layout;
	Oid			sequence;
	char	   *name;
	int64		max_value;

	if (PG_ARGISNULL(0))
		arguments_refuse_null("sequence", NULL);
	if (PG_ARGISNULL(1))
		arguments_refuse_null("layout", NULL);
	sequence = PG_GETARG_OID(0);
	layout = layout_type_argument(fcinfo, 1);

	PreventCommandDuringRecovery("snowflake_alter_sequence()");
	PreventCommandIfReadOnly("snowflake_alter_sequence()");

	/* After this lock no other session takes a value. */
	name = sequence_lock_to_alter(sequence, &max_value);

	if (!layout->spec.is_default && sequence_owned_by_extension(sequence))
		refuse_layout(sequence, layout,
					  "The extension's own sequence serves layout \"instagram\" only.",
					  "Use a new sequence.");

	check_last_value(sequence, name, layout, max_value);
	if (sequence_is_fit_for(sequence, &layout->spec))
		PG_RETURN_VOID();

	SPI_connect();
	SPI_execute(psprintf("ALTER SEQUENCE %s AS pg_catalog.int8 INCREMENT BY 1 MAXVALUE %lld CACHE 1 NO CYCLE OWNED BY NONE",
						 name, (long long) layout->spec.max_value),
				false, 0);
	SPI_finish();

	/*
	 * The command refers to the sequence by its name, and our lock does not
	 * keep the sequence's schema from being renamed.  If the name has come to
	 * mean another sequence, the command has altered that one, and the error
	 * undoes the change.
	 */
	if (!sequence_is_fit_for(sequence, &layout->spec))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not alter sequence \"%s\" because of a concurrent change",
						get_rel_name(sequence)),
				 errdetail("Its schema was renamed, and its name became that of another sequence."),
				 errhint("Call snowflake_alter_sequence() again.")));
	PG_RETURN_VOID();
}

/*
 * The last value of the tick that an ID belongs to.  All IDs that the layout
 * makes from later values are larger than the ID.
 *
 * Raise an error if the time of the ID is more than a day ahead of the clock:
 * then the ID is of another layout, or a clock is wrong, and to make larger
 * IDs the sequence would have to stay that far ahead.
 */
static int64
value_of_id(const Layout *layout, int64 id)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64		tick;
	TimestampTz ts;

	arguments_check_id(id);
	tick = layout_tick(layout, (uint64) id);

	/*
	 * An ID that is too large for the layout is of a tick that the layout does
	 * not use, because layout_tick() counts bits above the timestamp as part
	 * of the tick.  That tick has no time, or one that is beyond the layout's
	 * end.
	 */
	if (!layout_tick_time(layout, tick, &ts) || id > layout_max_id(layout, ts))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is too large for layout \"%s\"",
						(long long) id, layout->text),
				 errhint("Use the sequence that serves the layout of this ID.")));
	if (ts - now > USECS_PER_DAY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is more than a day ahead of the clock",
						(long long) id),
				 errdetail("In layout \"%s\" its time is %s; the clock says %s.",
						   layout->text, arguments_time_string(ts), arguments_time_string(now)),
				 errhint("Check the clock, and that this is an ID of the layout. If it was generated while a clock was fast, use a new sequence with a new shard.")));
	return Min((int64) tick * layout->spec.slots + layout->spec.slots - 1,
			   layout->spec.max_value);
}

/*
 * snowflake_advance(sequence, id [, layout]): let every later ID of a sequence
 * be larger than an ID
 *
 * Not strict, for the reason that snowflake_alter_sequence() is not.
 */
Datum
snowflake_advance(PG_FUNCTION_ARGS)
{
	Oid			sequence;
	const Layout *layout;
	SettingsLimits limits;

	PreventCommandDuringRecovery("snowflake_advance()");
	PreventCommandIfReadOnly("snowflake_advance()");
	PreventCommandIfParallelMode("snowflake_advance()");

	if (PG_ARGISNULL(0))
		arguments_refuse_null("sequence", NULL);
	if (PG_ARGISNULL(1))
		arguments_refuse_null("id", "If it is the largest ID of a table without rows, there is nothing to do.");
	if (PG_NARGS() > 2 && PG_ARGISNULL(2))
		arguments_refuse_null("layout", NULL);

	sequence = PG_GETARG_OID(0);
	layout = PG_NARGS() > 2 ? layout_type_argument(fcinfo, 2) :
		layout_type_find_served(sequence_lock_and_get_max_value(sequence));

	/* This checks privileges before anything is said about the ID. */
	sequence_lock_and_check(sequence_find(sequence), &layout->spec, SEQUENCE_SET);

	layout_type_require_time(layout);
	limits = settings_limits();
	generator_advance(sequence, &layout->spec, &limits,
					  value_of_id(layout, PG_GETARG_INT64(1)));
	PG_RETURN_VOID();
}
