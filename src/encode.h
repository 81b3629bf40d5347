/*-------------------------------------------------------------------------
 *
 * encode.h
 *	  IDs as text, and IDs that do not show their order.
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

#pragma GCC visibility push(hidden)
extern const Encoding *encode_find(const char *name);

extern int	encode_write(const Encoding *encoding, int64 id, char text[ENCODE_MAX_WIDTH]);
extern int	encode_read(const Encoding *encoding, const char *text, int length, int64 *id);

extern int64 encode_permute(int64 id, int64 key, bool inverse);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_ENCODE_H */
