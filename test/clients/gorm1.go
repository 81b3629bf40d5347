// GORM 1.  test/external/clients.pl compares what this prints with the tables.

package main

import (
	"database/sql"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/jinzhu/gorm"
	_ "github.com/jinzhu/gorm/dialects/postgres"
)

// The type keeps GORM from declaring the column as a bigserial; with a default, it
// leaves the column out and reads it back with RETURNING.
type Album struct {
	ID      int64  `gorm:"primary_key;type:bigint;default:next_id(5)"`
	Title   string `gorm:"type:text;not null"`
	CoverID sql.NullInt64
}

type Photo struct {
	ID      int64  `gorm:"primary_key;type:bigint;default:next_id(5)"`
	Title   string `gorm:"type:text;not null"`
	AlbumID sql.NullInt64
}

type Tag struct {
	ID int64 `gorm:"primary_key;type:snowflake;default:next_id(5)"`
}

// What GORM makes by itself
type Plain struct {
	ID int64
}

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

func ids(photos []Photo) (ids []int64) {
	for _, photo := range photos {
		ids = append(ids, photo.ID)
	}
	return
}

type schemaLog struct{ altered int }

func (log *schemaLog) Print(values ...interface{}) {
	text := fmt.Sprint(values...)
	if strings.Contains(text, "ALTER TABLE") || strings.Contains(text, "CREATE TABLE") {
		log.altered++
	}
}

func main() {
	db, err := gorm.Open("postgres", "")
	check(err)
	check(db.AutoMigrate(&Album{}, &Photo{}, &Tag{}).Error)
	check(db.Exec("ALTER TABLE photos ADD FOREIGN KEY (album_id) REFERENCES albums").Error)
	check(db.Exec("ALTER TABLE albums ADD FOREIGN KEY (cover_id) REFERENCES photos DEFERRABLE INITIALLY DEFERRED").Error)
	check(db.Exec("INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')").Error)

	// The column's default makes the ID; Create() reads it back.
	photo := Photo{Title: "draft"}
	check(db.Create(&photo).Error)

	// Insert or update by ID.
	upsert := Photo{ID: photo.ID, Title: "first"}
	check(db.Set("gorm:insert_option", "ON CONFLICT (id) DO UPDATE SET title = excluded.title").Create(&upsert).Error)

	// IDs taken first, for rows that refer to each other.
	var taken []int64
	check(db.Raw("SELECT next_ids(5, 2) AS id").Pluck("id", &taken).Error)
	check(db.Transaction(func(tx *gorm.DB) error {
		album := Album{ID: taken[0], Title: "album", CoverID: sql.NullInt64{Int64: taken[1], Valid: true}}
		cover := Photo{ID: taken[1], Title: "cover", AlbumID: sql.NullInt64{Int64: taken[0], Valid: true}}
		if err := tx.Create(&album).Error; err != nil {
			return err
		}
		return tx.Create(&cover).Error
	}))

	// Many rows, each of which is an INSERT of its own.
	var bulk []int64
	check(db.Transaction(func(tx *gorm.DB) error {
		for n := 0; n < 10000; n++ {
			photo := Photo{Title: fmt.Sprintf("bulk %d", n)}
			if err := tx.Create(&photo).Error; err != nil {
				return err
			}
			bulk = append(bulk, photo.ID)
		}
		return nil
	}))

	// A page of the newest, and the one that follows it.
	var page, nextPage, recent []Photo
	check(db.Order("id DESC").Limit(20).Find(&page).Error)
	check(db.Where("id < ?", page[len(page)-1].ID).Order("id DESC").Limit(20).Find(&nextPage).Error)

	// When a row was made, and the rows of the last hour.
	var madeAt time.Time
	check(db.Raw("SELECT snowflake_timestamp(?)", photo.ID).Row().Scan(&madeAt))
	check(db.Where("id >= snowflake_min_id(?)", time.Now().Add(-time.Hour)).Order("id").Find(&recent).Error)

	// An ID of the type snowflake
	var tag, found Tag
	check(db.Create(&tag).Error)
	check(db.First(&found, tag.ID).Error)

	fmt.Printf("types GORM: %T %T\n", photo.ID, found.ID)
	report("tags", tag.ID, found.ID)
	report("one", photo.ID)
	report("pair", taken...)
	report("bulk", bulk...)
	report("pages", ids(append(page, nextPage...))...)
	report("made", madeAt.UnixMilli())
	report("recent", ids(recent)...)

	// What AutoMigrate() changes, when it runs again
	changes := &schemaLog{}
	db.SetLogger(changes)
	db.LogMode(true)
	check(db.AutoMigrate(&Album{}, &Photo{}, &Tag{}).Error)
	report("changes", int64(changes.altered))

	check(db.AutoMigrate(&Plain{}).Error)
	report("created", int64(changes.altered))
	plain := Plain{}
	check(db.Create(&plain).Error)
	report("plain", plain.ID)
}
