/*-------------------------------------------------------------------------
 *
 * definition.c
 *	  The text of a layout's definition: reading and printing it.
 *
 * Like layout.c, this file can be built and fuzzed without a server.  It does
 * not know the built-in layouts, nor how IDs are composed.  Of IDs it knows
 * that they sort by time, and that neither the last tick nor value 0 is used.
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

#include "definition.h"

/* Epochs are of the years 1 to 9999, and from 1000 on if they are ISO times. */
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
 * most three digits, and after them only zeros.  The zone is Z or an offset.
 * The whole time has fewer than 64 characters.
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

/* Read an epoch, which is a number of milliseconds since 1970 or a time. */
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
	return parse_iso_time(string, length, msecs) && *msecs <= EPOCH_MAX;
}

/* Add field "name:bits" to the definition.  Returns NULL, or what is wrong. */
static const char *
parse_field(const char *word, int name_length, const char *value, int value_length,
			ParsedLayout *parsed)
{
	static const char *const words[] = {"timestamp", "sequence", "epoch", "tick"};
	char		name[LAYOUT_NAME_LENGTH + 1] = {0};
	LayoutRole	role = LAYOUT_SHARD;
	int			bits_of_role[] = {0, 0, 0};
	int64		bits;

	for (int i = 0; i < name_length; i++)
	{
		char		c = word[i];

		if (!is_digit(c) && c != '_' &&
			!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
			return "a field's name consists of letters, digits and underscores";
	}
	if (name_length == 0 || name_length > LAYOUT_NAME_LENGTH)
		return "a field's name has 1 to 15 characters";
	memcpy(name, word, name_length);

	/*
	 * "Sequence" is not the name "sequence", so it would be one of the fields
	 * that make up the shard.  Whoever writes it does not mean that.
	 */
	for (int i = 0; i < (int) lengthof(words); i++)
		if (strcmp(name, words[i]) != 0 && pg_strcasecmp(name, words[i]) == 0)
			return "timestamp, sequence, epoch and tick are written in lower case";
	if (!parse_number(value, value_length, 64, &bits) || bits == 0)
		return "a field has 1 to 64 bits";
	if (parsed->nfields == LAYOUT_MAX_FIELDS)
		return "a layout has at most 8 fields";

	if (strcmp(name, "timestamp") == 0)
		role = LAYOUT_TICK;
	else if (strcmp(name, "sequence") == 0)
		role = LAYOUT_SEQUENCE;
	bits_of_role[role] = (int) bits;
	for (int i = 0; i < parsed->nfields; i++)
	{
		if (strcmp(parsed->fields[i].name, name) == 0)
			return "the name is given twice";
		bits_of_role[parsed->fields[i].role] += parsed->fields[i].bits;
	}
	if (role == LAYOUT_TICK && parsed->nfields > 0)
		return "the timestamp must come first, or IDs would not sort by time";
	if (bits_of_role[LAYOUT_SEQUENCE] > LAYOUT_PART_BITS)
		return "the sequence has at most 31 bits";
	if (bits_of_role[LAYOUT_SHARD] > LAYOUT_PART_BITS)
		return "the fields other than timestamp and sequence make up the shard, which has at most 31 bits";
	if (bits_of_role[LAYOUT_TICK] + bits_of_role[LAYOUT_SHARD] + bits_of_role[LAYOUT_SEQUENCE] > 64)
		return "the fields have more than 64 bits in all";

	strcpy(parsed->fields[parsed->nfields].name, name);
	parsed->fields[parsed->nfields].bits = (uint8) bits;
	parsed->fields[parsed->nfields].role = role;
	parsed->nfields++;
	return NULL;
}

/*
 * Read a definition, which is words such as "name:bits", "epoch:time" and
 * "tick:length".  Returns NULL, or what is wrong with the word that *error
 * tells then.
 */
const char *
definition_parse(const char *string, ParsedLayout *parsed, LayoutError *error)
{
	LayoutError first = {0};	/* the word of the first field */
	LayoutError epoch = {0};
	LayoutError tick = {0};
	bool		has_timestamp;
	int			sequence_bits = 0;
	const char *end = string;

	memset(parsed, 0, sizeof(ParsedLayout));
	parsed->kind = LAYOUT_BITS;

	while (*(end += strspn(end, LAYOUT_SPACES)) != '\0')
	{
		const char *word = end;
		int			length = (int) strcspn(word, LAYOUT_SPACES);
		int			name_length = (int) strcspn(word, ":" LAYOUT_SPACES);
		int			value_length = length - name_length - 1;
		const char *value = word + length - value_length;

		end += length;
		*error = (LayoutError) {.start = (int) (word - string), .length = length};

		if (value_length < 0)
			return "expected name:bits, epoch:time or tick:length";

		if (word_is(word, name_length, "epoch"))
		{
			if (epoch.length > 0)
				return "the epoch is given twice";
			epoch = *error;
			if (!parse_epoch(value, value_length, &parsed->epoch))
				return "an epoch is a number of milliseconds since 1970, or a time like 2020-01-01T00:00:00.000Z, with Z or an offset, of the years 1000 to 9999";
		}
		else if (word_is(word, name_length, "tick"))
		{
			if (tick.length > 0)
				return "the tick is given twice";
			tick = *error;
			for (int i = 0; i < (int) lengthof(tick_names); i++)
				if (word_is(value, value_length, tick_names[i].name))
					parsed->tick_usecs = tick_names[i].usecs;
			if (parsed->tick_usecs == 0)
				return "a tick is 1us, 10us, 1ms, 10ms or 1s";
		}
		else
		{
			const char *reason = parse_field(word, name_length, value, value_length, parsed);

			if (reason != NULL)
				return reason;
			if (parsed->nfields == 1)
				first = *error;
		}
	}

	has_timestamp = parsed->nfields > 0 && parsed->fields[0].role == LAYOUT_TICK;
	for (int i = 0; i < parsed->nfields; i++)
		if (parsed->fields[i].role == LAYOUT_SEQUENCE)
			sequence_bits = parsed->fields[i].bits;

	if (!has_timestamp && (epoch.length > 0 || tick.length > 0))
	{
		*error = epoch.length > 0 ? epoch : tick;
		return epoch.length > 0 ? "an epoch needs a timestamp" : "a tick needs a timestamp";
	}
	*error = first;
	if (!has_timestamp && sequence_bits == 0)
		return "a layout needs a timestamp or a sequence";
	if (has_timestamp && epoch.length == 0)
		return "a timestamp needs an epoch";

	/*
	 * A layout without a timestamp has one tick, and so has a timestamp of one
	 * bit, because its last tick is not used.  Value 0 is never taken, so with
	 * less than two bits for the sequence number one tick has at most one
	 * value.  But CREATE SEQUENCE wants MAXVALUE to be larger than MINVALUE.
	 */
	if ((!has_timestamp || parsed->fields[0].bits == 1) && sequence_bits < 2)
		return "there is no room for IDs";

	if (has_timestamp && tick.length == 0)
		parsed->tick_usecs = 1000;
	return NULL;
}

void
definition_print(const ParsedLayout *parsed, char *string)
{
	char	   *end = string;

	for (int i = 0; i < parsed->nfields; i++)
		end += sprintf(end, "%s%s:%d", i > 0 ? " " : "",
					   parsed->fields[i].name, parsed->fields[i].bits);
	if (parsed->tick_usecs != 0)
		end += sprintf(end, " epoch:%lld", (long long) parsed->epoch);
	for (int i = 0; i < (int) lengthof(tick_names); i++)
	{
		/* The default is not printed. */
		if (parsed->tick_usecs == tick_names[i].usecs && parsed->tick_usecs != 1000)
			end += sprintf(end, " tick:%s", tick_names[i].name);
	}
}
