# RPostgreSQL.  test/external/clients.pl compares what this prints with the tables.

suppressMessages(library(RPostgreSQL))
db <- dbConnect(PostgreSQL(), host = Sys.getenv("PGHOST"), port = Sys.getenv("PGPORT"),
                user = Sys.getenv("PGUSER"), dbname = Sys.getenv("PGDATABASE"))

# A bigint becomes a double, which loses digits: IDs as text, in both directions.
column <- function(sql, ...) dbGetQuery(db, sprintf(sql, ...))[[1]]

# The column's default makes the ID; RETURNING brings it back.
photo_id <- column("INSERT INTO photos (title) VALUES ('draft') RETURNING id::text")

# Insert or update by ID.
invisible(dbExecute(db, sprintf("INSERT INTO photos (id, title) VALUES (%s, 'first')
  ON CONFLICT (id) DO UPDATE SET title = excluded.title", photo_id)))

# IDs taken first, for rows that refer to each other.
taken <- column("SELECT next_ids(5, 2)::text")
invisible(dbExecute(db, "BEGIN"))
invisible(dbExecute(db, sprintf("INSERT INTO albums (id, title, cover_id) VALUES (%s, 'album', %s)", taken[1], taken[2])))
invisible(dbExecute(db, sprintf("INSERT INTO photos (id, title, album_id) VALUES (%s, 'cover', %s)", taken[2], taken[1])))
invisible(dbExecute(db, "COMMIT"))

# Many rows: their IDs in one call, then COPY, which takes text for a bigint.
bulk <- data.frame(id = column("SELECT next_ids(5, 10000)::text"), title = paste("bulk", 0:9999))
invisible(dbWriteTable(db, "photos", bulk, append = TRUE, row.names = FALSE))

# A page of the newest, and the one that follows it.
page <- column("SELECT id::text FROM photos ORDER BY photos.id DESC LIMIT 20")
next_page <- column("SELECT id::text FROM photos WHERE id < %s ORDER BY photos.id DESC LIMIT 20", page[20])

# When a row was made, and the rows of the last hour.
made_at <- column("SELECT (extract(epoch FROM snowflake_timestamp(%s)) * 1000)::bigint::text", photo_id)
hour_ago <- format(Sys.time() - 3600, "%Y-%m-%dT%H:%M:%SZ", tz = "UTC")
recent <- column("SELECT id::text FROM photos WHERE id >= snowflake_min_id('%s') ORDER BY photos.id", hour_ago)

cat("version RPostgreSQL ", as.character(packageVersion("RPostgreSQL")), "\n", sep = "")
cat("one", photo_id, "\n")
cat("pair", taken, "\n")
cat("bulk", bulk$id, "\n")
cat("pages", page, next_page, "\n")
cat("made", made_at, "\n")
cat("recent", recent, "\n")

# A bigint as it comes
id <- column("SELECT id FROM photos WHERE title = 'first'")
cat("number", class(id), sprintf("%.0f", id), "\n")

# A snowflake is text, with a warning that the type is not known.
invisible(dbWriteTable(db, "tags", data.frame(id = photo_id), append = TRUE, row.names = FALSE))
tag_id <- suppressWarnings(column("SELECT id FROM tags"))
cat("types RPostgreSQL: ", class(id), " ", class(tag_id), "\n", sep = "")
cat("tags", tag_id, "\n")
