/*-------------------------------------------------------------------------
 *
 * fuzz.c
 *	  Give the pure functions whatever a fuzzer comes up with.
 *
 * "lab/check fuzz" builds and runs it.  The first byte of an input says which
 * functions it is for.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "encode.h"
#include "layout.h"

/* Assert() may be compiled away, and PostgreSQL's printf() is in a library. */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
		{ \
			fputs(__FILE__ ":" CppAsString2(__LINE__) \
				  ": not so: " #condition "\n", stderr); \
			abort(); \
		} \
	} while (0)

typedef struct Input
{
	const uint8 *data;
	size_t		size;
} Input;

/* Take a byte off the input, which zeros follow when it has come to its end. */
static uint8
take_byte(Input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

static uint64
take_uint64(Input *input)
{
	uint64		number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | take_byte(input);

	return number;
}

/* An ID, which is as likely to be near an end of the range as in its middle */
static int64
take_id(Input *input)
{
	uint8		how = take_byte(input);
	uint64		number = (take_uint64(input) & PG_INT64_MAX) >> (how & 63);

	return (int64) (how & 64 ? PG_INT64_MAX - number : number);
}

/*
 * If a text can be read as a number, writing that number gives the same text.
 * sql/encode.sql has what base32 reads besides.
 */
static void
check_text(const Encoding *encoding, const char *text, size_t length)
{
	char		written[ENCODE_MAX_WIDTH];
	int64		id = -1;
	size_t		position = encode_read(encoding, text, (int) length, &id);

	/* Otherwise, this is where the fault is. */
	CHECK(position <= length + 1);
	if (position > 0)
		return;

	CHECK(id >= 0 && encode_write(encoding, id, written) == (int) length);
	CHECK(encoding->lenient || memcmp(written, text, length) == 0);
}

/* encode.c: the rest of the input is a text, and it is numbers. */
static void
fuzz_encode(Input *input)
{
	static const char *const names[] = {"base62", "base32", "base64url"};
	const Encoding *encoding = encode_find(names[take_byte(input) % lengthof(names)]);
	char		text[ENCODE_MAX_WIDTH];
	int64		id;
	int64		read = -1;

	check_text(encoding, (const char *) input->data, input->size);

	id = take_id(input);
	CHECK(encode_read(encoding, text, encode_write(encoding, id, text), &read) == 0 && read == id);
	if (id > 0)
	{
		int64		key = (int64) take_uint64(input);
		int64		image = encode_permute(id, key, false);
		int64		original = encode_permute(id, key, true);

		CHECK(image >= 1 && encode_permute(image, key, true) == id);
		CHECK(original >= 1 && encode_permute(original, key, false) == id);
	}
}

/* A text of what layouts are made of, as few others are layouts */
static void
build_text(Input *input, char *text, size_t size)
{
	static const char *const parts[] = {
		"timestamp:", "sequence:", "shard:", "node:", "a:", "epoch:", "tick:",
		" ", " ", " ", ":", "-", "+", ".", "Z", "T", "_", "\t",
		"0", "1", "2", "5", "9", "10", "12", "13", "31", "41", "64",
		"1us", "10us", "1ms", "10ms", "1s", "1420070400000",
		"2020-01-01T00:00:00", "-05:30", "twitter", "trace", "decimal", "sonyflake",
		"timestamp:41 shard:13 sequence:10 epoch:0", "timestamp:30 a:10 b:10 sequence:8 epoch:1",
		"timestamp:20 epoch:-1", " node:15", " sequence:6", " tick:1us", " tick:10us", " tick:10ms", " tick:1s"
	};

	text[0] = '\0';
	for (int count = take_byte(input) % 32; count > 0; count--)
		strlcat(text, parts[take_byte(input) % lengthof(parts)], size);
}

static void
check_ids(const Layout *layout, Input *input)
{
	uint64		tick = take_uint64(input) % (uint64) (layout->spec.last_tick + 1);
	uint64		slot = take_uint64(input) % (uint64) layout->spec.slots;
	uint64		shard = take_uint64(input) % (uint64) layout->shards;
	int64		value = (int64) (tick * layout->spec.slots + slot);
	int64		other = (int64) (take_uint64(input) % ((uint64) layout->spec.max_value + 1));
	int64		time = (int64) take_uint64(input);
	uint64		id = layout_id(layout, value, shard);
	uint64		other_id = layout_id(layout, other, shard);
	uint64		sum = 0;
	uint64		part;

	CHECK(id <= PG_INT64_MAX);
	CHECK(layout_shard(layout, id) == (int64) shard);
	CHECK(layout_number(layout, id) == (layout->spec.slots > 1 ?
										(int64) slot + layout->first_number : 0));

	/* A shard's IDs are as many as the values, and in their order. */
	if (layout->parsed.kind == LAYOUT_BITS)
		CHECK((value < other) == (id < other_id) && (value == other) == (id == other_id));
	else if (layout->parsed.kind == LAYOUT_DECIMAL)
		CHECK((value == other) == (id == other_id));

	/* The fields are all there is to an ID. */
	for (int i = 0; i < layout->nfields; i++)
		CHECK(!__builtin_mul_overflow((uint64) layout_field(layout, id, i), layout->fields[i].unit, &part) &&
			  !__builtin_add_overflow(sum, part, &sum));
	CHECK(sum == id);

	if (layout->has_time)
	{
		int64		begin;
		int64		end;
		int64		found;

		CHECK(layout_tick(layout, id) == tick);
		CHECK(layout_tick_time(layout, tick, &begin));
		CHECK(layout_tick_time(layout, tick + 1, &end) && end == begin + layout->spec.tick_usecs);
		CHECK(layout_time_tick(layout, begin, &found) && found == (int64) tick);
		CHECK(layout_time_tick(layout, end - 1, &found) && found == (int64) tick);

		/* The bounds hold for any time, and where it matters. */
		for (int i = 0; i < 5; i++)
		{
			int64		times[] = {time, begin, begin - 1, begin + 1, end - 1};

			CHECK(((int64) id >= layout_min_id(layout, times[i])) == (begin >= times[i]));
			CHECK(((int64) id <= layout_max_id(layout, times[i])) == (begin <= times[i]));
		}
	}

	/* Any number can be taken apart. */
	id = take_uint64(input);
	for (int i = 0; i < layout->nfields; i++)
		(void) layout_field(layout, id, i);
	CHECK(layout_shard(layout, id) >= 0 && layout_shard(layout, id) <= PG_INT32_MAX);
	CHECK(layout_number(layout, id) >= 0 && layout_number(layout, id) <= PG_INT32_MAX);
	if (layout->has_clock)
		(void) layout_tick_time(layout, layout_tick(layout, id), &time);
}

/* layout.c: a layout is printed as one that is the same; an error is in the text. */
static void
fuzz_layout(Input *input)
{
	char		text[512];
	char		printed[LAYOUT_TEXT_SIZE];
	ParsedLayout parsed;
	ParsedLayout read;
	LayoutError error;
	Layout		layout;

	memset(&error, 0, sizeof(error));
	if (take_byte(input) % 8 == 0)
		snprintf(text, sizeof(text), "%.*s", (int) input->size, (const char *) input->data);
	else
		build_text(input, text, sizeof(text));

	if (!layout_parse(text, &parsed, &error))
	{
		CHECK(error.reason != NULL);
		CHECK(error.start >= 0 && error.length >= 0);
		CHECK((size_t) error.start + error.length <= strlen(text));
		return;
	}

	layout_print(&parsed, printed);
	CHECK(strlen(printed) < LAYOUT_TEXT_SIZE);
	CHECK(layout_parse(printed, &read, &error));
	CHECK(memcmp(&parsed, &read, sizeof(read)) == 0);

	layout_init(&layout, &parsed);
	CHECK(layout.spec.slots >= 1 && layout.shards >= 1 && layout.spec.last_tick >= 0);
	CHECK(layout.spec.max_value >= 1);
	CHECK(layout.shards <= INT64CONST(1) << LAYOUT_PART_BITS);
	check_ids(&layout, input);
}

extern int	LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	Input		input = {data, size};

	if (take_byte(&input) % 2 == 0)
		fuzz_encode(&input);
	else
		fuzz_layout(&input);
	return 0;
}
