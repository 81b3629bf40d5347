/*-------------------------------------------------------------------------
 *
 * encode_functions.c
 *	  SQL functions for IDs as text and IDs that do not show their order.
 *
 * To this file an ID is a number: it does not know layouts or sequences.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "compat.h"

#include "arguments.h"
#include "encode.h"

PG_FUNCTION_INFO_V1(snowflake_to_text);
PG_FUNCTION_INFO_V1(snowflake_from_text);
PG_FUNCTION_INFO_V1(snowflake_obfuscate);
PG_FUNCTION_INFO_V1(snowflake_reveal);

static const Encoding *
get_encoding(const char *name)
{
	const Encoding *encoding = encode_find(name);

	if (encoding == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized encoding: \"%s\"", name),
				 errhint("The encodings are base62, base32 and base64url.")));
	return encoding;
}

Datum
snowflake_to_text(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	const Encoding *encoding = get_encoding(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	char		string[ENCODE_MAX_WIDTH];

	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld has no text form", (long long) id),
				 errdetail("Numbers with a text form are 0 to %lld.",
						   (long long) PG_INT64_MAX)));

	PG_RETURN_TEXT_P(cstring_to_text_with_len(string, encode_write(encoding, id, string)));
}

Datum
snowflake_from_text(PG_FUNCTION_ARGS)
{
	text	   *encoded = PG_GETARG_TEXT_PP(0);
	const Encoding *encoding = get_encoding(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	int			length = VARSIZE_ANY_EXHDR(encoded);
	int64		id;
	int			position = encode_read(encoding, VARDATA_ANY(encoded), length, &id);

	if (position > 0)
	{
		char	   *string = text_to_cstring(encoded);

		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid %s ID \"%s\" at position %d",
						encoding->name, string, position),
				 length > encoding->width &&
				 strspn(string, "0123456789") == strlen(string) ?
				 errhint("If these are the ID's decimal digits, cast the string to bigint.") : 0));
	}

	PG_RETURN_INT64(id);
}

Datum
snowflake_obfuscate(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);

	arguments_check_id(id);
	PG_RETURN_INT64(encode_permute(id, PG_GETARG_INT64(1), false));
}

Datum
snowflake_reveal(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);

	arguments_check_id(id);
	PG_RETURN_INT64(encode_permute(id, PG_GETARG_INT64(1), true));
}
