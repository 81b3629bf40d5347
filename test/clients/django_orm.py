# Django in a project of one file, which is migrated.

import os
import sys
import tempfile

import django
from django.apps import AppConfig
from django.conf import settings
from django.core.management import call_command
from django.db import connection, models
from django.db.backends.signals import connection_created
from psycopg2.extensions import INTEGER, new_type, register_type


class Gallery(AppConfig):
    name, label, path = "__main__", "gallery", os.getcwd()


directory = tempfile.TemporaryDirectory()
os.mkdir(directory.name + "/gallery_migrations")
open(directory.name + "/gallery_migrations/__init__.py", "w").close()
sys.path.append(directory.name)
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}},
    DEFAULT_AUTO_FIELD="__main__.NextIdField", INSTALLED_APPS=["__main__.Gallery"],
    MIGRATION_MODULES={"gallery": "gallery_migrations"}, USE_TZ=True)
django.setup()


class NextIdField(models.BigAutoField):
    """A key that the column's default makes: for DEFAULT_AUTO_FIELD."""

    def db_type(self, connection):
        return "bigint DEFAULT next_id(5)"

    def rel_db_type(self, connection):
        return "bigint"

    def db_type_suffix(self, connection):  # no IDENTITY, which Django 4.1 and later would add
        return None


class SnowflakeField(NextIdField):
    def db_type(self, connection):
        return "snowflake DEFAULT next_id(5)"


def register_snowflake(connection, **arguments):
    """A snowflake is text, unless the driver is told that it is a number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'snowflake'::regtype::oid")
        register_type(new_type(cursor.fetchone(), "snowflake", INTEGER), connection.connection)


def model(table, **fields):
    meta = type("Meta", (), {"app_label": "gallery", "db_table": table})
    fields = {"title": models.TextField(default=""), "__module__": __name__, "Meta": meta, **fields}
    return type(table.capitalize(), (models.Model,), fields)


Photo = model("photos", parent=models.ForeignKey("self", models.CASCADE, null=True))
Tag = model("tags", id=SnowflakeField(primary_key=True))

connection_created.connect(register_snowflake)
call_command("makemigrations", verbosity=0)
call_command("migrate", verbosity=0)
call_command("makemigrations", check=True, dry_run=True, verbosity=0)

photo = Photo.objects.create(title="one")
many = Photo.objects.bulk_create([Photo(title=f"many {n}") for n in range(1000)])
registered = Tag.objects.create()
connection_created.disconnect(register_snowflake)
connection.close()
tag = Tag.objects.get(id=registered.id)

print("version Django", django.get_version())
print("types Django:", *(type(id).__name__ for id in (photo.id, tag.id, registered.id)))
print("tags", registered.id, tag.id)
print("same_row_unless_registered", tag == registered)
print("one", photo.id)
print("many", *(row.id for row in many))
