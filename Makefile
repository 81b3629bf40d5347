# Makefile of the snowflake extension

MODULE_big = snowflake
OBJS = \
	$(WIN32RES) \
	generator.o \
	layout.o \
	snowflake.o
PGFILEDESC = "snowflake - time-sortable 64-bit IDs"

EXTENSION = snowflake
DATA = snowflake--1.0.sql

PG_CONFIG = pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
