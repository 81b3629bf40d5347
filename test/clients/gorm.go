// GORM: a field whose default it knows is left out of an INSERT, and read back.  Without one the key is a bigserial.

package main

import (
	"fmt"
	"log"

	"github.com/jinzhu/gorm"
	_ "github.com/jinzhu/gorm/dialects/postgres"
)

type Photo struct {
	ID    int64  `gorm:"primary_key;type:bigint;default:next_id(5)"`
	Title string `gorm:"type:text;not null"`
}

type Tag struct {
	ID int64 `gorm:"primary_key;type:snowflake;default:next_id(5)"`
}

type Plain struct {
	ID int64
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	db, err := gorm.Open("postgres", "")
	check(err)
	check(db.AutoMigrate(&Photo{}, &Tag{}, &Plain{}).Error)

	photo := Photo{Title: "one"}
	check(db.Create(&photo).Error)

	// Each row is an INSERT of its own.
	many := ""
	check(db.Transaction(func(tx *gorm.DB) error {
		for n := 0; n < 1000; n++ {
			photo := Photo{Title: fmt.Sprintf("many %d", n)}
			if err := tx.Create(&photo).Error; err != nil {
				return err
			}
			many += fmt.Sprint(" ", photo.ID)
		}
		return nil
	}))

	var tag, found Tag
	check(db.Create(&tag).Error)
	check(db.First(&found, tag.ID).Error)
	plain := Plain{}
	check(db.Create(&plain).Error)

	fmt.Printf("types GORM: %T %T\n", photo.ID, found.ID)
	fmt.Println("tags", tag.ID, found.ID)
	fmt.Println("one", photo.ID)
	fmt.Println("many" + many)
	fmt.Println("id_of_plain", plain.ID)
}
