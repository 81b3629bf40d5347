. /tmp/opr/lib.sh
mk r 6006; echo "log_statement=none" >> $B/r/postgresql.conf; up r
psql -X -h $B/s -p 6006 -qc "create database app" -c "create role web login"
q 6001 -qc "alter subscription news disable" -c "alter subscription news set (slot_name=none)" -c "drop subscription news"
q 6001 -qc "create sequence tweets_id_seq" -c "select snowflake_alter_sequence('tweets_id_seq','twitter')" -c "create table tweets(id snowflake primary key default next_id(33,'tweets_id_seq'), body text)" -c "insert into tweets(body) values('t')" -c "insert into albums(title) values ('z')" -c "create sequence d_seq" -c "select snowflake_alter_sequence('d_seq','bits 41+13+10')"
cd $B; pg_dump -h s -p 6001 -U postgres -Fc -f app.dump app
pg_restore -e -h s -p 6006 -U postgres -d app app.dump && echo restored
q 6006 -c '\set VERBOSITY verbose' -c "insert into albums(title) values('y')"
q 6006 -c "insert into tweets(body) values('t2') returning id, snowflake_timestamp(id,'twitter')" -c "insert into photos(title) values('x2') returning snowflake_shard(id)"
q 6006 -f places.sql
q 6006 -c "SELECT sequence, layout, lead, state FROM snowflake_sequences()"
echo "--- target without extension"
mv /usr/share/postgresql/15/extension/snowflake.control /tmp/opr/s/ 2>/dev/null
psql -X -h s -p 6006 -c "create database copy" -U postgres
pg_restore -e -h s -p 6006 -U postgres -d copy app.dump
