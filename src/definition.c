/*-------------------------------------------------------------------------
 *
 * definition.c
 *	  The text of a layout's definition: reading and printing it.
 *
 * Like layout.c, this file can be built and fuzzed without a server.  It does
 * not know the built-in layouts, nor how IDs are composed.  Of IDs it
 * checks only that a definition leaves room for them.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FRONTEND
#include "postgres.h"
#else
#include "postgres_fe.h"
#endif

#include <time.h>

#include "layout.h"

/* Epochs have years of four digits. */
#define EPOCH_MIN			INT64CONST(-62135596800000) /* 0001-01-01 */
#define EPOCH_MAX			INT64CONST(253402300799999) /* 9999-12-31 */

/* The ticks that a definition can have */
static const struct
{
	const char *name;
	int32		usecs;
}			tick_names[] = {
	{"1us", 1}, {"10us", 10}, {"1ms", 1000}, {"10ms", 10000}, {"1s", 1000000}
};

/*
 * Describe what is wrong with a text, and where.  Returns false, so that
 * callers can return the result.
 */
static bool
set_error(LayoutError *error, const char *reason, int start, int length)
{
	error->reason = reason;
	error->unknown_name = false;
	error->start = start;
	error->length = length;
	return false;
}

static inline bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool
word_is(const char *word, int length, const char *string)
{
	return strlen(string) == (size_t) length && memcmp(word, string, length) == 0;
}

/*
 * Read a number from 0 to "max", which consists of nothing but digits.
 * Returns false if the string is anything else.
 */
static bool
parse_number(const char *string, int length, int64 max, int64 *number)
{
	int64		n = 0;

	if (length == 0)
		return false;
	for (int i = 0; i < length; i++)
	{
		if (!is_digit(string[i]))
			return false;
		n = n * 10 + (string[i] - '0');
		if (n > max)
			return false;
	}
	*number = n;
	return true;
}

/* PostgreSQL's own limit of a zone's offset, in seconds */
#define ZONE_LIMIT		(16 * 3600)

/*
 * Read an ISO 8601 time, such as 2020-01-01T00:00:00.123+05:30, as
 * milliseconds since 1970.  The year is 1000 or later, because C libraries
 * print earlier ones in different ways.  The fraction is optional.  It has at
 * most three digits, and any number of zeros after them.  The zone is Z or an
 * offset.
 */
static bool
parse_iso_time(const char *string, int length, int64 *msecs)
{
	static const char format[] = "%Y-%m-%dT%H:%M:%S";
	struct tm	time = {0};
	struct tm	zone = {0};
	char		text[64];
	char		printed[64];
	char	   *rest;
	int			fraction = 0;

	if (length >= (int) sizeof(text))
		return false;
	memcpy(text, string, length);
	text[length] = '\0';

	/*
	 * strptime() takes numbers of fewer digits, and timegm() days that the
	 * month does not have, such as February 30.  Printing the result again
	 * shows whether the text is the usual one of this time.
	 */
	rest = strptime(text, format, &time);
	if (rest == NULL || time.tm_year < 1000 - 1900)
		return false;
	*msecs = (int64) timegm(&time) * 1000;
	if (strftime(printed, sizeof(printed), format, &time) != (size_t) (rest - text) ||
		memcmp(printed, text, rest - text) != 0)
		return false;

	if (*rest == '.')
	{
		int			unit = 1000;

		if (!is_digit(*++rest))
			return false;
		for (; is_digit(*rest); rest++)
		{
			unit /= 10;
			if (unit == 0 && *rest != '0')
				return false;	/* an epoch is of whole milliseconds */
			fraction += (*rest - '0') * unit;
		}
	}

	rest = strptime(rest, "%z", &zone);
	*msecs += fraction - (int64) zone.tm_gmtoff * 1000;
	return rest != NULL && *rest == '\0' &&
		zone.tm_gmtoff > -ZONE_LIMIT && zone.tm_gmtoff < ZONE_LIMIT;
}

/*
 * Read an epoch, which is a number of milliseconds since 1970 or a time.
 */
static bool
parse_epoch(const char *string, int length, int64 *msecs)
{
	bool		negative = length > 0 && string[0] == '-';

	if (parse_number(string + negative, length - negative,
					 negative ? -EPOCH_MIN : EPOCH_MAX, msecs))
	{
		if (negative)
			*msecs = -*msecs;
		return true;
	}
	return parse_iso_time(string, length, msecs) &&
		*msecs >= EPOCH_MIN && *msecs <= EPOCH_MAX;
}

/*
 * Read "name:bits" and add the field to the definition.  The word begins at
 * "start" of the string and has the given length; its first colon is at
 * "colon".
 */
static bool
parse_field(const char *string, int start, int colon, int length,
			ParsedLayout *parsed, LayoutError *error)
{
	static const char *const words[] = {"timestamp", "sequence", "epoch", "tick"};
	const char *name = string + start;
	int			name_length = colon - start;
	int			field = parsed->nfields;
	int			all_bits = 0;
	int			shard_bits = 0;
	int64		bits;

	for (int i = 0; i < name_length; i++)
	{
		char		c = name[i];

		if (!is_digit(c) && c != '_' &&
			!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
			return set_error(error, "a field's name consists of letters, digits and underscores",
							 start, length);
	}
	if (name_length == 0 || name_length > LAYOUT_NAME_LENGTH)
		return set_error(error, "a field's name has 1 to 15 characters", start, length);

	/*
	 * "Sequence" is not the name "sequence", so it would be one of the fields
	 * that make up the shard.  Whoever writes it does not mean that.
	 */
	for (int i = 0; i < (int) lengthof(words); i++)
	{
		if (strlen(words[i]) == (size_t) name_length &&
			!word_is(name, name_length, words[i]) &&
			pg_strncasecmp(name, words[i], name_length) == 0)
			return set_error(error, "timestamp, sequence, epoch and tick are written in lower case",
							 start, length);
	}
	if (!parse_number(string + colon + 1, start + length - colon - 1, 64, &bits) ||
		bits == 0)
		return set_error(error, "a field has 1 to 64 bits", start, length);
	if (field == LAYOUT_MAX_FIELDS)
		return set_error(error, "a layout has at most 8 fields", start, length);

	memcpy(parsed->fields[field].name, name, name_length);
	parsed->fields[field].bits = (uint8) bits;
	parsed->nfields++;

	for (int i = 0; i <= field; i++)
	{
		all_bits += parsed->fields[i].bits;
		if (!definition_field_is(parsed, i, "timestamp") &&
			!definition_field_is(parsed, i, "sequence"))
			shard_bits += parsed->fields[i].bits;
		if (i < field && strncmp(parsed->fields[i].name,
								 parsed->fields[field].name,
								 LAYOUT_NAME_LENGTH) == 0)
			return set_error(error, "the name is given twice", start, length);
	}
	if (field > 0 && definition_field_is(parsed, field, "timestamp"))
		return set_error(error, "the timestamp must come first, or IDs would not sort by time",
						 start, length);
	if (definition_field_is(parsed, field, "sequence") && bits > LAYOUT_PART_BITS)
		return set_error(error, "the sequence has at most 31 bits", start, length);
	if (shard_bits > LAYOUT_PART_BITS)
		return set_error(error, "the fields other than timestamp and sequence make up the shard, which has at most 31 bits",
						 start, length);
	if (all_bits > 64)
		return set_error(error, "the fields have more than 64 bits in all", start, length);

	return true;
}

/*
 * Read a definition, which is words such as "name:bits", "epoch:time" and
 * "tick:length".
 */
bool
definition_parse(const char *string, ParsedLayout *parsed,
				 LayoutError *error)
{
	int			epoch_start = -1,
				epoch_length = 0;
	int			tick_start = -1,
				tick_length = 0;
	int			first_start = -1,
				first_length = 0;
	bool		has_timestamp;
	int			sequence_bits = 0;
	int			end = 0;

	memset(parsed, 0, sizeof(ParsedLayout));
	parsed->kind = LAYOUT_BITS;

	for (;;)
	{
		int			start = end;
		int			colon = -1;
		int			length;

		while (definition_is_space(string[start]))
			start++;
		if (string[start] == '\0')
			break;
		for (end = start; string[end] != '\0' && !definition_is_space(string[end]); end++)
		{
			if (string[end] == ':' && colon < 0)
				colon = end;
		}
		length = end - start;

		if (colon < 0)
			return set_error(error, "expected name:bits, epoch:time or tick:length",
							 start, length);

		if (word_is(string + start, colon - start, "epoch"))
		{
			if (epoch_start >= 0)
				return set_error(error, "the epoch is given twice", start, length);
			epoch_start = start;
			epoch_length = length;
			if (!parse_epoch(string + colon + 1, end - colon - 1,
							 &parsed->epoch))
				return set_error(error, "an epoch is a number of milliseconds since 1970, or a time like 2020-01-01T00:00:00.000Z, with Z or an offset, of the years 1000 to 9999",
								 start, length);
		}
		else if (word_is(string + start, colon - start, "tick"))
		{
			if (tick_start >= 0)
				return set_error(error, "the tick is given twice", start, length);
			tick_start = start;
			tick_length = length;
			for (int i = 0; i < (int) lengthof(tick_names); i++)
			{
				if (word_is(string + colon + 1, end - colon - 1,
							tick_names[i].name))
					parsed->tick_usecs = tick_names[i].usecs;
			}
			if (parsed->tick_usecs == 0)
				return set_error(error, "a tick is 1us, 10us, 1ms, 10ms or 1s",
								 start, length);
		}
		else
		{
			if (!parse_field(string, start, colon, length, parsed, error))
				return false;
			if (first_start < 0)
			{
				first_start = start;
				first_length = length;
			}
		}
	}

	has_timestamp = parsed->nfields > 0 &&
		definition_field_is(parsed, 0, "timestamp");
	for (int i = 0; i < parsed->nfields; i++)
	{
		if (definition_field_is(parsed, i, "sequence"))
			sequence_bits = parsed->fields[i].bits;
	}

	if (!has_timestamp && epoch_start >= 0)
		return set_error(error, "an epoch needs a timestamp", epoch_start, epoch_length);
	if (!has_timestamp && tick_start >= 0)
		return set_error(error, "a tick needs a timestamp", tick_start, tick_length);
	if (!has_timestamp && sequence_bits == 0)
		return set_error(error, "a layout needs a timestamp or a sequence",
						 Max(first_start, 0), first_length);
	if (has_timestamp && epoch_start < 0)
		return set_error(error, "a timestamp needs an epoch", first_start, first_length);

	/*
	 * A layout without a timestamp has one tick, and so has a timestamp of one
	 * bit, because its last tick is not used.  Value 0 is never taken, so with
	 * less than two bits for the sequence number one tick has at most one
	 * value.  But CREATE SEQUENCE wants MAXVALUE to be larger than MINVALUE.
	 */
	if ((!has_timestamp || parsed->fields[0].bits == 1) && sequence_bits < 2)
		return set_error(error, "there is no room for IDs", first_start, first_length);

	if (has_timestamp && tick_start < 0)
		parsed->tick_usecs = 1000;
	return true;
}

/*
 * Print a definition.  "string" has room for LAYOUT_TEXT_SIZE bytes.
 */
void
definition_print(const ParsedLayout *parsed, char *string)
{
	char	   *end = string;

	for (int i = 0; i < parsed->nfields; i++)
		end += sprintf(end, "%s%.*s:%d", i > 0 ? " " : "",
					   LAYOUT_NAME_LENGTH, parsed->fields[i].name,
					   parsed->fields[i].bits);
	if (parsed->tick_usecs != 0)
		end += sprintf(end, " epoch:%lld", (long long) parsed->epoch);
	for (int i = 0; i < (int) lengthof(tick_names); i++)
	{
		/* The default is not printed. */
		if (parsed->tick_usecs == tick_names[i].usecs && parsed->tick_usecs != 1000)
			end += sprintf(end, " tick:%s", tick_names[i].name);
	}
}
