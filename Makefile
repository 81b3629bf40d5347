# Makefile of the snowflake extension

MODULE_big = snowflake
OBJS = $(WIN32RES) $(patsubst $(srcdir)/%.c,%.o,$(wildcard $(srcdir)/*.c $(srcdir)/src/*.c))
PGFILEDESC = "snowflake - time-sortable 64-bit IDs"

# The second extension, in admin/, is SQL and PL/pgSQL alone.  Its script is made of these
# files, of which each uses only those before it.
EXTENSION = snowflake admin/snowflake_admin
DATA = snowflake--1.0.sql
DATA_built = admin/snowflake_admin--1.0.sql
ADMIN = begin snowflake engines owner locks copies unfinished uses keys ranges make_partitions drop_partitions \
	table_key move move_back chain \
	$(addprefix widen/, columns rehearse obstacles steps swap widen) \
	$(addprefix partition/, attach state copy obstacles partition) renumber \
	$(addprefix check/, fillers ids generators remedies sight shard makers parameters ahead behind position \
	columns privileges partitions waits replication clock installation check) set_back

# make installcheck: against a running server, EXCEPT some tests
REGRESS = $(filter-out $(EXCEPT), $(patsubst $(srcdir)/sql/%.sql,%,$(sort $(wildcard $(srcdir)/sql/*.sql))))
ISOLATION = $(filter-out $(EXCEPT), $(patsubst $(srcdir)/test/specs/%.spec,%,$(sort $(wildcard $(srcdir)/test/specs/*.spec))))
ISOLATION_OPTS = --inputdir='$(srcdir)/test'
PG_CPPFLAGS = -I$(srcdir)/src
EXTRA_CLEAN = output_iso tmp_check tmp_check_iso

PG_CONFIG = pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(wildcard $(PGXS)),)
$(error $(if $(PGXS),$(PGXS) is missing,"$(PG_CONFIG) --pgxs" failed): install the headers of PostgreSQL's server (in Debian, the package postgresql-server-dev-NN for major version NN), or set PG_CONFIG to the pg_config of an installation that has them)
endif
include $(PGXS)

# Few builds of PostgreSQL track which object needs which header.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h)

# A build outside of the source tree begins without these directories.
.PHONY: directories
$(OBJS) $(OBJS:.o=.bc) $(DATA_built): | directories
directories:
	@$(MKDIR_P) src admin

# This file has the list, so the script depends on it, too.
admin/snowflake_admin--1.0.sql: $(patsubst %,$(srcdir)/admin/%.sql,$(ADMIN)) $(srcdir)/Makefile
	cat $(filter %.sql,$^) >$@

# The TAP tests start servers of their own, which PostgreSQL refuses to do for
# root.  Hence they are not part of installcheck, which root may run.
.PHONY: prove_installcheck
prove_installcheck:
	rm -rf '$(CURDIR)'/tmp_check
	$(MKDIR_P) '$(CURDIR)'/tmp_check
	cd '$(srcdir)' && \
	TESTDIR='$(CURDIR)' TESTDATADIR='$(CURDIR)/tmp_check' \
	TESTLOGDIR='$(CURDIR)/tmp_check/log' \
	PATH="$(bindir):$$PATH" PGPORT='6$(DEF_PGPORT)' \
	PG_REGRESS='$(top_builddir)/src/test/regress/pg_regress' \
	$(PROVE) -I '$(top_srcdir)/src/test/perl' -I test/perl $(PROVE_FLAGS) \
	$(if $(PROVE_TESTS),$(PROVE_TESTS),test/t/*.pl)
