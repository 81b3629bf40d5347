-- What the extension :extension consists of: for each object that \dx+ lists, a line
-- with its definition, owner, grants to others, and comment.  Of a function in
-- SQL or PL/pgSQL, the line has all but the body.

WITH object AS (
	SELECT e.extowner, d.classid, d.objid,
		pg_describe_object(d.classid, d.objid, 0) || ': ' || CASE
			WHEN p.oid IS NOT NULL THEN CASE WHEN lanname IN ('sql', 'plpgsql')
				THEN regexp_replace(pg_get_functiondef(p.oid), '\n(AS \$|BEGIN ATOMIC).*', '') ELSE pg_get_functiondef(p.oid) END
			WHEN s.seqrelid IS NOT NULL THEN format(
				'%s START %s INCREMENT %s MINVALUE %s MAXVALUE %s CACHE %s CYCLE %s PERSISTENCE %s, dumped: %s',
				seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle, relpersistence,
				coalesce(c.oid = ANY (extconfig), false))
			WHEN t.oid IS NOT NULL THEN format(
				'TYPE %s INPUT %s OUTPUT %s RECEIVE %s SEND %s LENGTH %s BY VALUE %s ALIGNMENT %s STORAGE %s CATEGORY %s DEFAULT %L',
				typtype, typinput, typoutput, typreceive, typsend, typlen, typbyval, typalign, typstorage, typcategory, typdefault)
			WHEN k.oid IS NOT NULL THEN format('FUNCTION %s CONTEXT %s METHOD %s', castfunc::regprocedure, castcontext, castmethod)
			WHEN n.oid IS NOT NULL THEN 'SCHEMA'
			ELSE 'NOT LOOKED AT'
		END AS definition,
		coalesce(proowner, relowner, typowner, nspowner) AS owner,
		coalesce(proacl, relacl, typacl, nspacl, acldefault('f', proowner), acldefault('T', typowner)) AS acl
	FROM pg_extension e
	JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
	LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	LEFT JOIN pg_language ON pg_language.oid = prolang
	LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
	LEFT JOIN pg_sequence s ON s.seqrelid = c.oid
	LEFT JOIN pg_type t ON d.classid = 'pg_type'::regclass AND d.objid = t.oid
	LEFT JOIN pg_namespace n ON d.classid = 'pg_namespace'::regclass AND d.objid = n.oid
	LEFT JOIN pg_cast k ON d.classid = 'pg_cast'::regclass AND d.objid = k.oid
	WHERE e.extname = :'extension'
		-- not array and row types, which PostgreSQL makes with others, and lists from 17 on
		AND NOT EXISTS (SELECT FROM pg_depend i WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i')
)
SELECT concat_ws(' | ', btrim(regexp_replace(definition, '\s+', ' ', 'g')),
	CASE owner WHEN extowner THEN 'extension''s owner' ELSE 'superuser' END,
	(SELECT string_agg(format('%s TO %s', privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END),
		', ' ORDER BY privilege_type)
	 FROM aclexplode(acl) WHERE grantee <> owner),
	description) COLLATE "C" AS line
FROM object LEFT JOIN pg_description AS c ON c.classoid = classid AND c.objoid = objid AND objsubid = 0
ORDER BY line;
