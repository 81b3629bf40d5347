// Go's database/sql and lib/pq.  test/external/clients.pl compares what this prints with
// the tables.

package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/lib/pq"
)

type Photo struct {
	ID    int64  `json:"id,string"` // quoted: JavaScript would round a number
	Title string `json:"title"`
}

func photos(rows *sql.Rows, err error) (photos []Photo) {
	check(err)
	for rows.Next() {
		var photo Photo
		check(rows.Scan(&photo.ID, &photo.Title))
		photos = append(photos, photo)
	}
	check(rows.Err())
	return
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ids(photos []Photo) (ids []int64) {
	for _, photo := range photos {
		ids = append(ids, photo.ID)
	}
	return
}

func report(what string, numbers ...int64) {
	fmt.Print(what)
	for _, number := range numbers {
		fmt.Print(" ", number)
	}
	fmt.Println()
}

func main() {
	db, err := sql.Open("postgres", "")
	check(err)

	// The column's default makes the ID; RETURNING brings it back.
	var photoID int64
	check(db.QueryRow("INSERT INTO photos (title) VALUES ($1) RETURNING id", "draft").Scan(&photoID))

	// Insert or update by ID.
	_, err = db.Exec(`INSERT INTO photos (id, title) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title`, photoID, "first")
	check(err)

	// IDs taken first, for rows that refer to each other, and for many rows by COPY.
	var taken []int64
	check(db.QueryRow("SELECT array(SELECT next_ids(5, 10002))").Scan(pq.Array(&taken)))
	albumID, coverID, bulk := taken[0], taken[1], taken[2:]

	tx, err := db.Begin()
	check(err)
	defer tx.Rollback()
	_, err = tx.Exec("INSERT INTO albums (id, title, cover_id) VALUES ($1, $2, $3)", albumID, "album", coverID)
	check(err)
	_, err = tx.Exec("INSERT INTO photos (id, title, album_id) VALUES ($1, $2, $3)", coverID, "cover", albumID)
	check(err)

	copyIn, err := tx.Prepare(pq.CopyIn("photos", "id", "title"))
	check(err)
	for n, id := range bulk {
		_, err = copyIn.Exec(id, fmt.Sprintf("bulk %d", n))
		check(err)
	}
	_, err = copyIn.Exec()
	check(err)
	check(copyIn.Close())
	check(tx.Commit())

	// A page of the newest, and the one that follows it.
	page := photos(db.Query("SELECT id, title FROM photos ORDER BY id DESC LIMIT 20"))
	lastID := page[len(page)-1].ID
	nextPage := photos(db.Query("SELECT id, title FROM photos WHERE id < $1 ORDER BY id DESC LIMIT 20", lastID))

	// When a row was made, and the rows of the last hour.
	var madeAt time.Time
	check(db.QueryRow("SELECT snowflake_timestamp($1)", photoID).Scan(&madeAt))
	hourAgo := time.Now().Add(-time.Hour)
	recent := photos(db.Query("SELECT id, title FROM photos WHERE id >= snowflake_min_id($1) ORDER BY id", hourAgo))

	// An ID of the type snowflake is read as any other, but has no type where there is none to scan it into.
	var tagID int64
	check(db.QueryRow("INSERT INTO tags (id) VALUES ($1) RETURNING id", photoID).Scan(&tagID))
	var untyped interface{}
	check(db.QueryRow("SELECT id FROM tags WHERE id = $1", tagID).Scan(&untyped))

	fmt.Printf("types lib/pq: %T %T\n", photoID, tagID)
	fmt.Printf("untyped %T %s\n", untyped, untyped)
	report("tags", tagID)
	report("one", photoID)
	report("pair", albumID, coverID)
	report("bulk", bulk...)
	report("pages", ids(append(page, nextPage...))...)
	report("made", madeAt.UnixMilli())
	report("recent", ids(recent)...)

	// A row in JSON and back, and an ID as a number of JSON that has no type.
	text, err := json.Marshal(recent[0])
	check(err)
	fmt.Println("json", string(text))
	var back Photo
	check(json.Unmarshal(text, &back))
	var loose map[string]interface{}
	check(json.Unmarshal([]byte(fmt.Sprintf(`{"id": %d}`, photoID)), &loose))
	fmt.Println("back", back.ID)
	fmt.Printf("loose %.0f\n", loose["id"])
}
