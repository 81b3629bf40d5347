# Python's DB-API in one of its drivers, named as an argument: pg8000, pgdb, psycopg2 or pyodbc.  Each takes parameters
# in its own style, and executemany() makes many rows.

import importlib
import os
import re
import sys

name, = sys.argv[1:]
driver = importlib.import_module(name)
# pg8000 and pgdb read no database's name from the environment, and ODBC none at all.
host, port, user, database = (os.environ["PG" + what] for what in ("HOST", "PORT", "USER", "DATABASE"))
db = {
    "pg8000": lambda: driver.connect(user, host=host, port=int(port), database=database),
    "pgdb": lambda: driver.connect(host=f"{host}:{port}", user=user, database=database),
    "psycopg2": lambda: driver.connect(""),
    "pyodbc": lambda: driver.connect(
        f"Driver=PostgreSQL Unicode;Server={host};Port={port};Uid={user};Database={database};UseServerSidePrepare=1"),
}[name]()
cursor = db.cursor()
parameter = "?" if driver.paramstyle == "qmark" else "%s"


def query(sql, *values):
    cursor.execute(sql.replace("?", parameter), values)
    return [row[0] for row in cursor.fetchall()]


one, = query("INSERT INTO photos (title) VALUES (?) RETURNING id", "one")
many = query("SELECT next_ids(5, 1000)")
insert = "INSERT INTO photos (id, title) VALUES (?, ?)".replace("?", parameter)
cursor.executemany(insert, [(id, f"many {n}") for n, id in enumerate(many)])
tag, = query("INSERT INTO tags (id) VALUES (?) RETURNING id", one)
found, = query("SELECT id FROM tags WHERE id = ?", one)
db.commit()

client = {"pgdb": "PyGreSQL", "pyodbc": "psqlODBC"}.get(name, name)
version = db.getinfo(driver.SQL_DRIVER_VER) if name == "pyodbc" else driver.__version__
print("version", client, re.match(r"[\d.]+", version).group())
print(f"types {client}:", type(one).__name__, type(tag).__name__)
print("tags", tag, found)
print("one", one)
print("many", *many)
db.close()
