/*-------------------------------------------------------------------------
 *
 * definition.h
 *	  The text of a layout's definition: reading and printing it.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DEFINITION_H
#define SNOWFLAKE_DEFINITION_H

#define LAYOUT_SPACES		" \t\n\v\f\r"	/* what separates words */

/* Limits of a definition */
#define LAYOUT_MAX_FIELDS	8
#define LAYOUT_NAME_LENGTH	15	/* of a field's name */
#define LAYOUT_PART_BITS	31	/* of all shard fields, or of the sequence
								 * number */

/* Room for the longest text of a definition or a name, and its terminator */
#define LAYOUT_TEXT_SIZE	256

/*
 * What the fields of an ID are.  A definition in a text is always of the kind
 * LAYOUT_BITS.  Layouts of the other kinds are built in, and only their names
 * mean them.
 */
typedef enum LayoutKind
{
	LAYOUT_BITS,				/* bits, side by side */
	LAYOUT_TRACE,				/* bits, but the timestamp wraps around, and
								 * the sequence number begins at 1 and is
								 * called "counter" */
	LAYOUT_DECIMAL				/* decimal digits, and a tick that no clock
								 * moves on */
} LayoutKind;

/* What a field is for */
typedef enum LayoutRole
{
	LAYOUT_TICK,				/* the tick */
	LAYOUT_SHARD,				/* the shard, or a part of it */
	LAYOUT_SEQUENCE				/* the sequence number */
} LayoutRole;

/*
 * What a definition says.  Definitions are compared by their bytes, so bytes
 * that are not used are zero.
 */
typedef struct ParsedLayout
{
	uint8		kind;
	uint8		nfields;
	uint16		added_later;	/* the index of a built-in layout of a version
								 * after 1.0, which only its name sets, or 0 */
	int32		tick_usecs;		/* 0 without a timestamp */
	int64		epoch;			/* milliseconds since 1970-01-01 */
	struct
	{
		char		name[LAYOUT_NAME_LENGTH + 1];
		uint8		role;			/* a LayoutRole */
		uint8		bits;
	}			fields[LAYOUT_MAX_FIELDS];	/* most significant first */
} ParsedLayout;

/* What is wrong with the text of a layout, and in which bytes of it */
typedef struct LayoutError
{
	const char *reason;
	bool		unknown_name;	/* is it neither a definition nor the name of
								 * a built-in layout? */
	int			start;
	int			length;
} LayoutError;

#pragma GCC visibility push(hidden)
extern const char *definition_parse(const char *string, ParsedLayout *parsed, LayoutError *error);
extern void definition_print(const ParsedLayout *parsed, char *string);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_DEFINITION_H */
