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

#include "layout.h"

#pragma GCC visibility push(hidden)
extern bool definition_parse(const char *string, ParsedLayout *parsed,
							 LayoutError *error);
extern void definition_print(const ParsedLayout *parsed,
							 char *string);
#pragma GCC visibility pop

/*
 * Does this character separate words?
 */
static inline bool
definition_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/*
 * Does a field have this name?
 */
static inline bool
definition_field_is(const ParsedLayout *parsed, int field, const char *name)
{
	return strncmp(parsed->fields[field].name, name,
				   LAYOUT_NAME_LENGTH) == 0;
}

#endif							/* SNOWFLAKE_DEFINITION_H */
