/*-------------------------------------------------------------------------
 *
 * encode_functions.c
 *	  SQL functions for IDs as text and IDs that do not show their order, and
 *	  input of the type snowflake.
 *
 * To this file an ID is a number: it does not know layouts or sequences.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "compat.h"

#include "encode.h"
#include "snowflake.h"

PG_FUNCTION_INFO_V1(snowflake_in);
PG_FUNCTION_INFO_V1(snowflake_to_text);
PG_FUNCTION_INFO_V1(snowflake_from_text);
PG_FUNCTION_INFO_V1(snowflake_obfuscate);
PG_FUNCTION_INFO_V1(snowflake_reveal);

/*
 * Type snowflake.  Only its errors differ from those of bigint.
 */
Datum
snowflake_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);
	int64		value;
	int			sqlerrcode = ParseBigint(text, &value);

	if (sqlerrcode == ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(sqlerrcode),
				 errmsg("value \"%s\" is out of range for type %s",
						text, "snowflake")));
	if (sqlerrcode != ERRCODE_SUCCESSFUL_COMPLETION)
		ereturn(fcinfo->context, (Datum) 0,
				(errcode(sqlerrcode),
				 errmsg("invalid input syntax for type %s: \"%s\"",
						"snowflake", text)));
	PG_RETURN_INT64(value);
}

/*
 * IDs as text, and IDs that do not show their order
 */

static const Encoding *
get_encoding(text *name)
{
	const Encoding *encoding = encode_find(VARDATA_ANY(name),
											  VARSIZE_ANY_EXHDR(name));

	if (encoding == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized encoding: \"%s\"", text_to_cstring(name)),
				 errhint("The encodings are base62, base32 and base64url.")));

	return encoding;
}

Datum
snowflake_to_text(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	const Encoding *encoding = get_encoding(PG_GETARG_TEXT_PP(1));
	char		string[ENCODE_MAX_WIDTH];
	int			length;

	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld has no text form", (long long) id),
				 errdetail("IDs with a text form are 0 to %lld.",
						   (long long) PG_INT64_MAX)));

	length = encode_write(encoding, id, string);

	PG_RETURN_TEXT_P(cstring_to_text_with_len(string, length));
}

static bool
all_digits(const char *string, int length)
{
	for (int i = 0; i < length; i++)
	{
		if (string[i] < '0' || string[i] > '9')
			return false;
	}
	return true;
}

Datum
snowflake_from_text(PG_FUNCTION_ARGS)
{
	text	   *encoded = PG_GETARG_TEXT_PP(0);
	const Encoding *encoding = get_encoding(PG_GETARG_TEXT_PP(1));
	const char *string = VARDATA_ANY(encoded);
	int			length = VARSIZE_ANY_EXHDR(encoded);
	const char *at;
	DecodeResult result;
	int			position;
	int			at_length;
	int64		id;

	result = encode_read(encoding, string, length, &id, &position);
	if (result == DECODE_OK)
		PG_RETURN_INT64(id);

	/* The character at fault, whole. */
	at = string + position - 1;
	at_length = pg_mbcharcliplen(at, length - (position - 1), 1);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid %s ID \"%s\"",
					encoding->name, text_to_cstring(encoded)),
			 result == DECODE_BAD_DIGIT ?
			 errdetail("The character \"%.*s\" at position %d is not a digit of %s.",
					   at_length, at, position, encoding->name) :
			 result == DECODE_TOO_LARGE ?
			 errdetail("The digit \"%.*s\" at position %d makes it larger than %lld.",
					   at_length, at, position, (long long) PG_INT64_MAX) :
			 result == DECODE_LEADING_ZERO ?
			 errdetail("The digit \"%.*s\" at position %d is a leading zero, which %s does not allow.",
					   at_length, at, position, encoding->name) :
			 result == DECODE_TOO_LONG ?
			 errdetail("The string continues at position %d, but the longest ID in %s has %d characters.",
					   position, encoding->name, encoding->width) :
			 encoding->padded ?
			 errdetail("The string ends before position %d, but every ID in %s has %d characters.",
					   position, encoding->name, encoding->width) :
			 errdetail("The string is empty."),
			 result == DECODE_TOO_LONG && all_digits(string, length) ?
			 errhint("If these are the ID's decimal digits, cast the string to bigint.") : 0));
}

Datum
snowflake_obfuscate(PG_FUNCTION_ARGS)
{
	int64		id = snowflake_check_positive(PG_GETARG_INT64(0));

	PG_RETURN_INT64(encode_obfuscate(id, PG_GETARG_INT64(1)));
}

Datum
snowflake_reveal(PG_FUNCTION_ARGS)
{
	int64		id = snowflake_check_positive(PG_GETARG_INT64(0));

	PG_RETURN_INT64(encode_reveal(id, PG_GETARG_INT64(1)));
}
