// Go's database/sql with lib/pq: an ID of either type is scanned into an int64, and JSON keeps it by a tag of its field.

package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/lib/pq"
)

type Photo struct {
	ID int64 `json:"id,string"`
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	db, err := sql.Open("postgres", "")
	check(err)
	insert, err := db.Prepare("INSERT INTO photos (title) VALUES ($1) RETURNING id")
	check(err)
	var photo Photo
	check(insert.QueryRow("one").Scan(&photo.ID))

	// Their IDs in one call, then COPY
	var many []int64
	check(db.QueryRow("SELECT array(SELECT next_ids(5, $1))", 1000).Scan(pq.Array(&many)))
	tx, err := db.Begin()
	check(err)
	copyIn, err := tx.Prepare(pq.CopyIn("photos", "id", "title"))
	check(err)
	for n, id := range many {
		_, err = copyIn.Exec(id, fmt.Sprintf("many %d", n))
		check(err)
	}
	_, err = copyIn.Exec()
	check(err)
	check(copyIn.Close())
	check(tx.Commit())

	var tag int64
	check(db.QueryRow("INSERT INTO tags (id) VALUES ($1) RETURNING id", photo.ID).Scan(&tag))
	var untyped interface{}
	check(db.QueryRow("SELECT id FROM tags WHERE id = $1", tag).Scan(&untyped))
	result, err := db.Exec("UPDATE photos SET title = title WHERE id = $1", photo.ID)
	check(err)
	_, lastInsertId := result.LastInsertId()

	// JSON with the tag, and as a number that has no type
	text, err := json.Marshal(photo)
	check(err)
	var loose map[string]interface{}
	check(json.Unmarshal([]byte(fmt.Sprintf(`{"id": %d}`, photo.ID)), &loose))

	fmt.Printf("types lib/pq: %T %T\n", photo.ID, tag)
	fmt.Printf("untyped_snowflake %T %s\n", untyped, untyped)
	fmt.Println("tags", tag)
	fmt.Println("one", photo.ID)
	fmt.Println("many", strings.Trim(fmt.Sprint(many), "[]"))
	fmt.Println("last_insert_id", lastInsertId)
	fmt.Println("json", string(text))
	fmt.Printf("json_without_type %.0f\n", loose["id"])
}
