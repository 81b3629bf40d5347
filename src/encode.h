/*-------------------------------------------------------------------------
 *
 * encode.h
 *	  IDs as text, and IDs that do not show their order.
 *
 * The functions here are pure: they read no setting and no catalog, and they
 * raise no error.  Callers turn a result other than DECODE_OK into a message.
 * Nothing here knows what the bits of an ID mean.
 *
 * Texts are bytes with a length, without a terminator.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ENCODE_H
#define SNOWFLAKE_ENCODE_H

#define ENCODE_MAX_WIDTH	13	/* of the longest text in any encoding */

typedef struct Encoding
{
	const char *name;
	const char *digits;			/* in order of their value */
	const char *largest;		/* the text of 2^63 - 1 */
	int			base;
	int			width;			/* length of "largest" */
	bool		padded;			/* is every text as long as "largest"? */
	bool		lenient;		/* are lower case and look-alikes read, too? */
} Encoding;

typedef enum DecodeResult
{
	DECODE_OK,
	DECODE_BAD_DIGIT,			/* a character that is not a digit */
	DECODE_TOO_SHORT,			/* the text ends where a digit should be */
	DECODE_TOO_LONG,			/* the text goes on where it should end */
	DECODE_LEADING_ZERO,		/* a digit that would not be written */
	DECODE_TOO_LARGE			/* the digit makes it larger than 2^63 - 1 */
} DecodeResult;

#pragma GCC visibility push(hidden)
extern const Encoding *encode_find(const char *name, size_t length);

extern int	encode_write(const Encoding *encoding, int64 id,
						 char text[ENCODE_MAX_WIDTH]);
extern DecodeResult encode_read(const Encoding *encoding, const char *text,
								size_t length, int64 *id, int *position);

extern int64 encode_obfuscate(int64 id, int64 key);
extern int64 encode_reveal(int64 id, int64 key);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_ENCODE_H */
