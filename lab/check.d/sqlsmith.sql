-- What sqlsmith, of lab/check, finds to call.
--
-- It looks for functions in pg_proc.  Of PostgreSQL's own it finds here only some
-- that make values for the extension's, which would be one in a hundred otherwise.
-- It calls none that returns a set: hence the views.

CREATE EXTENSION snowflake SCHEMA public;
CREATE SCHEMA smith;
CREATE VIEW smith.pg_proc AS
	SELECT * FROM pg_catalog.pg_proc
	WHERE pronamespace = 'public'::regnamespace OR prokind = 'f' AND provolatile = 'i'
		AND prorettype IN ('int8'::regtype, 'text'::regtype, 'timestamptz'::regtype)
		AND proargtypes::oid[] <@ ARRAY['int8', 'int4', 'text', 'timestamptz']::regtype[]::oid[];
CREATE SEQUENCE smith.own MAXVALUE 1125899906841599;
CREATE TABLE smith.photos (
	id bigint PRIMARY KEY DEFAULT next_id(5), shard bigint, number int, layout snowflake_layout,
	sequence regclass, at timestamptz, encoding text, text text, flake snowflake DEFAULT next_id(), flakes snowflake[]);
INSERT INTO smith.photos (shard, number, layout, sequence, at, encoding, text, flakes)
	SELECT n, n, name::snowflake_layout, CASE n % 2 WHEN 0 THEN 'next_id_seq' ELSE 'smith.own' END,
		now() + n * interval '1 month', encoding, snowflake_to_text(next_id(5), encoding), ARRAY(SELECT next_ids(5, n))::snowflake[]
	FROM snowflake_layouts() WITH ORDINALITY AS l (name, d, e, t, s, i, x, m, n),
		unnest('{base62, base32, base64url}'::text[]) AS encoding;
CREATE VIEW smith.layouts AS SELECT * FROM snowflake_layouts();
CREATE VIEW smith.fields AS SELECT p.*, f.* FROM smith.photos p, snowflake_fields(p.id, p.layout) f;
CREATE VIEW smith.batch AS SELECT p.layout, n AS id FROM smith.photos p, next_ids(p.shard, p.number, p.sequence) n;
CREATE VIEW smith.batch_of_layout AS
	SELECT p.layout, n::snowflake AS flake FROM smith.photos p, next_ids(p.shard, p.number, p.sequence, 'instagram') n;
CREATE VIEW smith.status AS SELECT s.* FROM smith.photos p, snowflake_sequences(p.sequence) s;
CREATE VIEW smith.status_by_layout AS SELECT s.* FROM smith.photos p, snowflake_sequences(p.sequence, p.layout) s;
CREATE VIEW smith.sequences AS SELECT * FROM snowflake_sequences();
CREATE VIEW smith.decoded AS
	SELECT layout, snowflake_timestamp(id) AS timestamp, snowflake_shard(id) AS shard, snowflake_sequence_number(id) AS sequence,
		snowflake_min_id(at) AS min, snowflake_max_id(at) AS max, snowflake_id(at, shard, number) AS id,
		snowflake_from_text(text, encoding) AS decoded, snowflake_reveal(snowflake_obfuscate(id, shard), shard) AS revealed
	FROM smith.photos;
