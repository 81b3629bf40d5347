# Django's migrations that widen and move a key, in a project of one file.  Two of its files are the blocks of
# doc/clients.md, which come as arguments: the field, and the migration that widens.

import os
import sys
import tempfile

import django
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection, models

MOVES = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("gallery", "0002_widen")]
    operations = [migrations.RunSQL("CALL snowflake_move('photos')")]
"""
INITIAL = """
from django.db import migrations, models

class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel("Photo", [("id", models.AutoField(primary_key=True)), ("title", models.TextField())],
            options={"db_table": "photos"}),
        migrations.CreateModel("Comment", [("id", models.AutoField(primary_key=True)),
            ("photo", models.ForeignKey("gallery.photo", models.CASCADE))], options={"db_table": "comments"})]
"""
MODELS = """
from django.db import models
from gallery.fields import NextIdField

class Photo(models.Model):
    id = NextIdField(primary_key=True)
    title = models.TextField()
    class Meta:
        db_table = "photos"

class Comment(models.Model):
    id = models.AutoField(primary_key=True)
    photo = models.ForeignKey(Photo, models.CASCADE)
    class Meta:
        db_table = "comments"
"""

directory = tempfile.TemporaryDirectory()
sys.path.append(directory.name)
os.makedirs(directory.name + "/gallery/migrations")
for name, code in {"__init__": "", "migrations/__init__": "", "fields": sys.argv[1], "models": MODELS,
                   "migrations/0001_initial": INITIAL, "migrations/0002_widen": sys.argv[2],
                   "migrations/0003_move": MOVES}.items():
    with open(f"{directory.name}/gallery/{name}.py", "w") as file:
        file.write(code)
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"],
                           "OPTIONS": {"options": "-c snowflake.shard=99"}}},
    INSTALLED_APPS=["gallery"], USE_TZ=True)
django.setup()
from gallery.models import Comment, Photo

call_command("migrate", "gallery", "0001", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("INSERT INTO photos (title) VALUES ('old')")
call_command("migrate", "gallery", "0002", verbosity=0)
Photo.objects.create(title="widened")
call_command("migrate", verbosity=0)
call_command("makemigrations", check=True, dry_run=True, verbosity=0)
photo = Photo.objects.create(title="moved")
Comment.objects.create(photo=photo)


def refuses(field, value):
    try:
        field.run_validators(value)
        return False
    except ValidationError:
        return True


print("photos", *(photo.title for photo in Photo.objects.order_by("id")))
print("moved", photo.id)
with connection.cursor() as cursor:
    cursor.execute("SELECT snowflake_shard(%s)", [photo.id])
    print("shard", *cursor.fetchone())


def old_model():
    class OldPhoto(models.Model):
        id = models.AutoField(primary_key=True)

        class Meta:
            app_label, db_table = "gallery", "photos"
    return OldPhoto


print("old_model_refuses", refuses(old_model()._meta.get_field("id"), photo.id))
print("model_refuses", refuses(Photo._meta.get_field("id"), photo.id))
