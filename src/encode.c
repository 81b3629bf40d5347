/*-------------------------------------------------------------------------
 *
 * encode.c
 *	  IDs as text, and IDs that do not show their order.
 *
 * Pure functions over numbers and bytes.  This file knows nothing of the
 * server: no clock, no setting, no text type, no error reporting, so that it
 * can be built and fuzzed on its own.  Nor does it know layouts: to it, an ID
 * is a number.
 *
 * Links and the databases of other systems keep these texts and numbers.  So
 * neither the texts nor the permutation may ever change.  The regression test
 * "encode" compares them with values written down when they were introduced.
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

#include "encode.h"

/*
 * The digits of base62 and base32 are in the order of their ASCII codes, so
 * that texts of one width sort as the numbers do.  Base32 is Crockford's.
 *
 * Base64url is the way in which Instagram writes the IDs in its links: the
 * alphabet is that of RFC 4648, but it is used for the digits of a number and
 * not for bytes, and zeros at the beginning are left out.
 */
static const Encoding encodings[] = {
	{.name = "base62", .base = 62, .width = 11, .largest = "AzL8n0Y58m7", .padded = true,
	.digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"},
	{.name = "base32", .base = 32, .width = 13, .largest = "7ZZZZZZZZZZZZ", .padded = true, .lenient = true,
	.digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"},
	{.name = "base64url", .base = 64, .width = 11, .largest = "H__________",
	.digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"}
};

const Encoding *
encode_find(const char *name)
{
	for (size_t i = 0; i < lengthof(encodings); i++)
		if (strcmp(encodings[i].name, name) == 0)
			return &encodings[i];
	return NULL;
}

/* Write an ID, which is not negative.  Returns the length of the text. */
int
encode_write(const Encoding *encoding, int64 id, char text[ENCODE_MAX_WIDTH])
{
	uint64		base = (uint64) encoding->base;
	uint64		rest = (uint64) id;
	int			width = encoding->width;

	if (!encoding->padded)
	{
		width = 1;
		for (uint64 r = rest / base; r > 0; r /= base)
			width++;
	}

	for (int i = width - 1; i >= 0; i--)
	{
		text[i] = encoding->digits[rest % base];
		rest /= base;
	}

	return width;
}

/* The value of a digit, or -1 */
static int
digit_value(const Encoding *encoding, char c)
{
	const char *digit;

	if (encoding->lenient)
	{
		if (c >= 'a' && c <= 'z')
			c += 'A' - 'a';
		if (c == 'I' || c == 'L')
			c = '1';
		else if (c == 'O')
			c = '0';
	}

	digit = memchr(encoding->digits, c, encoding->base);
	return digit != NULL ? (int) (digit - encoding->digits) : -1;
}

/*
 * Read an ID.  Only a text that encode_write() could have written is accepted,
 * because otherwise there could be several links to one thing.  The exceptions
 * are lower case and look-alikes in base32, for people who type an ID.
 *
 * Returns 0, or the position of the first wrong character, counted from 1.  If
 * the text is too short, that is the position after its last one.  Everything
 * before the position is ASCII, so it is the same in characters and in bytes.
 */
int
encode_read(const Encoding *encoding, const char *text, int length, int64 *id)
{
	bool		as_largest = length >= encoding->width;
	uint64		result = 0;
	int			i;

	for (i = 0; i < Min(length, encoding->width); i++)
	{
		int			digit = digit_value(encoding, text[i]);
		bool		leading_zero = i == 0 && digit == 0 && length > 1;

		if (digit < 0 || (leading_zero && !encoding->padded))
			return i + 1;

		/*
		 * As long as the digits are those of the largest ID, a larger digit
		 * makes a number that is no ID.
		 */
		if (as_largest)
		{
			int			limit = digit_value(encoding, encoding->largest[i]);

			if (digit > limit)
				return i + 1;
			as_largest = digit == limit;
		}

		result = result * encoding->base + digit;
	}

	if (length > i || i < (encoding->padded ? encoding->width : 1))
		return i + 1;

	*id = (int64) result;
	return 0;
}

/*
 * The permutation
 *
 * It is a balanced Feistel network.  Such a network is a permutation of the
 * 64-bit numbers with any round function, even one that has no inverse, and
 * the same network with the round keys in reverse order is its inverse.
 *
 * Luby and Rackoff (1988) showed that four rounds with random functions cannot
 * be distinguished from a random permutation.  The round function here mixes
 * well, but it was not made to resist analysis, so there are eight rounds.
 * This is no cipher: the order of IDs is obscure but not secret.
 */
#define ROUNDS		8

/*
 * The generator splitmix64, which Sebastiano Vigna put into the public domain
 * in 2015 (https://prng.di.unimi.it/splitmix64.c).  It is a counter with this
 * increment, and mix13() makes a random number of each state of the counter.
 * mix13() is variant 13 of David Stafford's finalisers ("Better Bit Mixing -
 * Improving on MurmurHash3's 64-bit Finalizer", 2011).
 */
#define SPLITMIX64_INCREMENT	UINT64CONST(0x9e3779b97f4a7c15)

static inline uint64
mix13(uint64 z)
{
	z = (z ^ (z >> 30)) * UINT64CONST(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64
feistel(uint64 block, const uint64 keys[ROUNDS])
{
	uint32		left = (uint32) (block >> 32);
	uint32		right = (uint32) block;

	for (int i = 0; i < ROUNDS; i++)
	{
		uint32		next = left ^ (uint32) (mix13(keys[i] ^ right) >> 32);

		left = right;
		right = next;
	}

	/*
	 * Undo the exchange of the halves in the last round, so that the same code
	 * with the keys in reverse order is the inverse.
	 */
	return (uint64) right << 32 | left;
}

/*
 * The permutation of the IDs, 1 to 2^63 - 1, that "key" selects, or its
 * inverse.  The caller has checked that the argument is positive.
 *
 * feistel() permutes all 64-bit numbers.  Apply it until the result is an ID.
 * This ends, because a permutation consists of cycles: at the latest it comes
 * back to the ID where it began.  Half of all numbers are IDs, so it takes two
 * steps on average.  With the keys in reverse order, the same steps lead back.
 */
int64
encode_permute(int64 id, int64 key, bool inverse)
{
	uint64		state = (uint64) key;
	uint64		keys[ROUNDS];
	uint64		block = (uint64) id;

	for (int i = 0; i < ROUNDS; i++)
		keys[inverse ? ROUNDS - 1 - i : i] = mix13(state += SPLITMIX64_INCREMENT);

	do
	{
		block = feistel(block, keys);
	} while (block == 0 || block > (uint64) PG_INT64_MAX);
	return (int64) block;
}
