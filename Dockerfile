# Two images with the extension:
#
#	docker build -t postgres-snowflake .
#	docker build -t snowflake --target extension .
#
# The first is the official image of PostgreSQL, with the extension installed.
# The second has only the extension's files, for a container of PostgreSQL 18 or
# later that mounts them, as CloudNativePG does (doc/scaling.md).  The library
# must fit that container: name its image as BASE.
#
# lab/images builds both on Debian's PostgreSQL 18, and runs them.  The official
# image and CloudNativePG's have not been tried.
ARG PG_MAJOR=18
ARG BASE=postgres:${PG_MAJOR}

FROM ${BASE} AS build
ARG PG_MAJOR
USER root
RUN apt-get update && \
	apt-get install -y --no-install-recommends build-essential postgresql-server-dev-${PG_MAJOR}
COPY . /usr/src/snowflake
RUN cd /usr/src/snowflake && \
	make clean && make && make install DESTDIR=/install

FROM scratch AS extension
COPY --from=build /install/usr/lib/postgresql/*/lib/snowflake.so /lib/
COPY --from=build /install/usr/share/postgresql/*/extension/ /share/extension/

FROM ${BASE} AS server
COPY --from=build /install /
