# The official image of PostgreSQL, with the extension in it:
#
#	docker build --build-arg PG_MAJOR=17 -t postgres-snowflake .
#
# Untested: where this was written there was no Docker to run it with.  Its
# commands are those of the README.
ARG PG_MAJOR=17

FROM postgres:${PG_MAJOR} AS build
ARG PG_MAJOR
RUN apt-get update && \
	apt-get install -y --no-install-recommends build-essential postgresql-server-dev-${PG_MAJOR}
COPY . /usr/src/snowflake
RUN cd /usr/src/snowflake && \
	make clean && make && make install DESTDIR=/install

FROM postgres:${PG_MAJOR}
COPY --from=build /install /
