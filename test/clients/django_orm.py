# Django's ORM in a project of one file, migrated as a project is.  At the end,
# Django resets the sequences of tables that the argument makes.  test/external/clients.pl
# compares what this prints with the tables.

import io
import json
import os
import sys
import tempfile

import django
from django.apps import AppConfig, apps
from django.conf import settings
from django.core.management import call_command
from django.db import Error, connection
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from psycopg2.extensions import INTEGER, new_type, register_type


class Gallery(AppConfig):
    name, label, path = "__main__", "gallery", os.getcwd()


migrations = tempfile.TemporaryDirectory()
os.mkdir(migrations.name + "/gallery_migrations")
open(migrations.name + "/gallery_migrations/__init__.py", "w").close()
sys.path.append(migrations.name)
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}},
    DEFAULT_AUTO_FIELD="__main__.NextIdField",
    INSTALLED_APPS=["__main__.Gallery"],
    MIGRATION_MODULES={"gallery": "gallery_migrations"},
    USE_TZ=True,
)
django.setup()

from django.db import models


class NextIdField(models.BigAutoField):
    """A key that the column's default makes: for DEFAULT_AUTO_FIELD."""

    def db_type(self, connection):
        return "bigint DEFAULT next_id(5)"

    def rel_db_type(self, connection):
        return "bigint"

    def db_type_suffix(self, connection):  # no IDENTITY, which Django 4.1 and later would add
        return None


class Album(models.Model):
    title = models.TextField()
    cover = models.ForeignKey("Photo", models.PROTECT, related_name="+")


class Photo(models.Model):
    title = models.TextField()
    album = models.ForeignKey(Album, models.CASCADE, null=True)


class SnowflakeField(NextIdField):
    def db_type(self, connection):
        return "snowflake DEFAULT next_id(5)"

    def rel_db_type(self, connection):
        return "snowflake"


class Tag(models.Model):
    id = SnowflakeField(primary_key=True)
    parent = models.ForeignKey("Tag", models.CASCADE, null=True)

    class Meta:
        db_table = "tags"


@receiver(connection_created)
def register_snowflake(connection, **arguments):
    """A snowflake is text, unless the driver is told that it is a number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'snowflake'::regtype::oid")
        register_type(new_type(cursor.fetchone(), "snowflake", INTEGER), connection.connection)


def converted(table):
    """The model of a table that had a bigserial."""
    meta = type("Meta", (), {"app_label": "gallery", "db_table": table, "managed": False})
    return type(table.capitalize(), (models.Model,), {
        "__module__": __name__, "Meta": meta,
        "id": models.BigAutoField(primary_key=True), "title": models.TextField()})


tables = [converted("plain"), converted("altered"), converted("by_hand")]

call_command("makemigrations", verbosity=0)
call_command("migrate", verbosity=0)
call_command("makemigrations", check=True, dry_run=True, verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("INSERT INTO gallery_photo VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')")

from datetime import timedelta
from django.db import connection, transaction
from django.db.models import BigIntegerField, DateTimeField, F, Func, Value
from django.utils import timezone

# The column's default makes the ID; create() and save() read it back.
photo = Photo.objects.create(title="draft")

# Update or insert by ID.
Photo.objects.update_or_create(id=photo.id, defaults={"title": "first"})

# IDs taken first, for rows that refer to each other.  create() inserts; save() would try an UPDATE before.
with transaction.atomic(), connection.cursor() as cursor:
    cursor.execute("SELECT next_ids(5, 2)")
    (album_id,), (cover_id,) = cursor.fetchall()
    Album.objects.create(id=album_id, title="album", cover_id=cover_id)
    Photo.objects.create(id=cover_id, title="cover", album_id=album_id)

# Many rows; the IDs are in the objects.
bulk = Photo.objects.bulk_create([Photo(title=f"bulk {n}") for n in range(10000)])

# A page of the newest, and the one that follows it.
newest = Photo.objects.order_by("-id")
page = list(newest[:20])
next_page = list(newest.filter(id__lt=page[-1].id)[:20])

# When a row was made, and the rows of the last hour.
made_at = Photo.objects.values_list(
    Func(F("id"), function="snowflake_timestamp", output_field=DateTimeField()), flat=True).get(id=photo.id)
hour_ago = Func(Value(timezone.now() - timedelta(hours=1)), function="snowflake_min_id", output_field=BigIntegerField())
recent = Photo.objects.filter(id__gte=hour_ago).order_by("id")

print("version Django", django.get_version())
print("one", photo.id)
print("pair", album_id, cover_id)
print("bulk", *(row.id for row in bulk))
print("pages", *(row.id for row in page + next_page))
print("made", round(made_at.timestamp() * 1000))
print("recent", *(row.id for row in recent))

registered = Tag.objects.create()
Tag.objects.filter(id=registered.id).update(parent=registered)
connection_created.disconnect(register_snowflake)
connection.close()
tag = Tag.objects.get(id=registered.id)
print("types Django:", *(type(id).__name__ for id in (photo.id, tag.id, registered.id)))
print("tags", registered.id, tag.id, tag.parent_id)
print("same_row", tag == registered)


def outcome(action, *arguments):
    """The SQLSTATE of what fails, or "done"."""
    try:
        action(*arguments)
        return "done"
    except Error as error:
        return error.__cause__.pgcode


def load_data(model, id):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as fixture:
        json.dump([{"model": model._meta.label_lower, "pk": id, "fields": {"title": "loaded"}}], fixture)
        fixture.flush()
        call_command("loaddata", fixture.name, verbosity=0)


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


# What "manage.py sqlsequencereset gallery" prints, a line for each table.  It
# passes over an app without a module of models, which this file is.
apps.get_app_config("gallery").models_module = sys.modules[__name__]
printed = io.StringIO()
call_command("sqlsequencereset", "gallery", no_color=True, stdout=printed)
resets = {line.split('"')[1]: line for line in printed.getvalue().splitlines() if line.startswith("SELECT")}

execute(sys.argv[1])
for model in [Photo] + tables:
    table = model._meta.db_table
    before = model.objects.create(title="new")
    reset = outcome(execute, resets[table])
    after_reset = model.objects.create(title="new")
    loaded = outcome(load_data, model, after_reset.id)
    print("reset_" + table, reset, loaded, before.id, after_reset.id, model.objects.create(title="new").id)
