// pgx 4, without and with database/sql.  test/external/clients.pl compares what this prints
// with the tables.

package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
	_ "github.com/jackc/pgx/v4/stdlib"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func report(what string, numbers ...int64) {
	fmt.Print(what)
	for _, number := range numbers {
		fmt.Print(" ", number)
	}
	fmt.Println()
}

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "")
	check(err)

	column := func(query string, values ...interface{}) (column []int64) {
		rows, err := db.Query(ctx, query, values...)
		check(err)
		for rows.Next() {
			var id int64
			check(rows.Scan(&id))
			column = append(column, id)
		}
		check(rows.Err())
		return
	}

	// The column's default makes the ID; RETURNING brings it back.
	photoID := column("INSERT INTO photos (title) VALUES ($1) RETURNING id", "draft")[0]

	// Insert or update by ID.
	column(`INSERT INTO photos (id, title) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title`, photoID, "first")

	// IDs taken first, for rows that refer to each other, and for many rows by COPY.
	taken := column("SELECT next_ids(5, $1)", 10002)
	albumID, coverID, bulk := taken[0], taken[1], taken[2:]

	tx, err := db.Begin(ctx)
	check(err)
	defer tx.Rollback(ctx)
	_, err = tx.Exec(ctx, "INSERT INTO albums (id, title, cover_id) VALUES ($1, $2, $3)", albumID, "album", coverID)
	check(err)
	_, err = tx.Exec(ctx, "INSERT INTO photos (id, title, album_id) VALUES ($1, $2, $3)", coverID, "cover", albumID)
	check(err)
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "title"},
		pgx.CopyFromSlice(len(bulk), func(n int) ([]interface{}, error) {
			return []interface{}{bulk[n], fmt.Sprintf("bulk %d", n)}, nil
		}))
	check(err)
	check(tx.Commit(ctx))

	// A page of the newest, and the one that follows it.
	page := column("SELECT id FROM photos ORDER BY id DESC LIMIT 20")
	nextPage := column("SELECT id FROM photos WHERE id < $1 ORDER BY id DESC LIMIT 20", page[len(page)-1])

	// When a row was made, and the rows of the last hour.
	var madeAt time.Time
	check(db.QueryRow(ctx, "SELECT snowflake_timestamp($1)", photoID).Scan(&madeAt))
	hourAgo := time.Now().Add(-time.Hour)
	recent := column("SELECT id FROM photos WHERE id >= snowflake_min_id($1) ORDER BY id", hourAgo)

	// An ID of the type snowflake cannot be scanned into an int64, nor sent by COPY, unless the type is registered.
	var tagID int64
	err = db.QueryRow(ctx, "INSERT INTO tags (id) VALUES ($1) RETURNING id", photoID).Scan(&tagID)
	fmt.Println("scan", err)
	var text string
	check(db.QueryRow(ctx, "DELETE FROM tags RETURNING id").Scan(&text))
	insert := func(id int64) error {
		_, err := db.CopyFrom(ctx, pgx.Identifier{"tags"}, []string{"id"}, pgx.CopyFromRows([][]interface{}{{id}}))
		return err
	}
	fmt.Println("copy", insert(photoID))

	var oid uint32
	check(db.QueryRow(ctx, "SELECT 'snowflake'::regtype::oid").Scan(&oid))
	db.ConnInfo().RegisterDataType(pgtype.DataType{Value: &pgtype.Int8{}, Name: "snowflake", OID: oid})
	check(insert(photoID))
	registered := column("SELECT id FROM tags WHERE id = $1", photoID)[0]

	fmt.Printf("types pgx: %T error %T\n", photoID, registered)
	fmt.Println("tags", text, registered)
	report("one", photoID)
	report("pair", albumID, coverID)
	report("bulk", bulk...)
	report("pages", append(page, nextPage...)...)
	report("made", madeAt.UnixMilli())
	report("recent", recent...)

	// A sequence and a layout as parameters
	_, err = db.Exec(ctx, "SELECT next_id($1, $2, $3)", 5, "next_id_seq", "instagram")
	fmt.Println("parameters", err == nil, err)

	// database/sql asks for text, so that it can read a snowflake.
	std, err := sql.Open("pgx", "")
	check(err)
	check(std.QueryRow("SELECT id FROM tags WHERE id = $1", photoID).Scan(&tagID))
	report("database_sql", tagID)

	// It has no way to an ID but RETURNING.
	result, err := std.Exec("INSERT INTO photos (title) VALUES ('other')")
	check(err)
	_, err = result.LastInsertId()
	fmt.Println("last_insert_id", err == nil, err)
	_, err = std.Exec("DELETE FROM photos WHERE title = 'other'")
	check(err)
}
