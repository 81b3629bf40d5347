<?php
// PDO.  test/external/clients.pl compares what this prints with the tables.

$db = new PDO('pgsql:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);

function column(string $sql, mixed ...$values): array
{
    global $db;
    $statement = $db->prepare($sql);
    $statement->execute($values);
    return array_column($statement->fetchAll(PDO::FETCH_NUM), 0);
}

// The column's default makes the ID; RETURNING brings it back.
[$photoId] = column('INSERT INTO photos (title) VALUES (?) RETURNING id', 'draft');

// Insert or update by ID.
column('INSERT INTO photos (id, title) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title', $photoId, 'first');

// IDs taken first, for rows that refer to each other.
$db->beginTransaction();
[$albumId, $coverId] = column('SELECT next_ids(5, 2)');
column('INSERT INTO albums (id, title, cover_id) VALUES (?, ?, ?)', $albumId, 'album', $coverId);
column('INSERT INTO photos (id, title, album_id) VALUES (?, ?, ?)', $coverId, 'cover', $albumId);
$db->commit();

// Many rows: their IDs in one call, then COPY.
$bulk = column('SELECT next_ids(5, ?)', 10000);
$db->pgsqlCopyFromArray('photos', array_map(fn ($n, $id) => "$id\tbulk $n", array_keys($bulk), $bulk), "\t", '\\\\N', 'id, title');

// A page of the newest, and the one that follows it.
$page = column('SELECT id FROM photos ORDER BY id DESC LIMIT 20');
$nextPage = column('SELECT id FROM photos WHERE id < ? ORDER BY id DESC LIMIT 20', end($page));

// When a row was made, and the rows of the last hour.
[$madeAt] = column('SELECT snowflake_timestamp(?)', $photoId);
$hourAgo = new DateTimeImmutable('-1 hour');
$recent = column('SELECT id FROM photos WHERE id >= snowflake_min_id(?) ORDER BY id', $hourAgo->format(DATE_RFC3339_EXTENDED));

// An ID of the type snowflake is a string.
[$tagId] = column('INSERT INTO tags (id) VALUES (?) RETURNING id', $photoId);

echo 'version PDO ', phpversion('pdo_pgsql'), "\n";
echo 'one ', $photoId, "\n";
echo 'pair ', $albumId, ' ', $coverId, "\n";
echo 'bulk ', implode(' ', $bulk), "\n";
echo 'pages ', implode(' ', [...$page, ...$nextPage]), "\n";
echo 'made ', (new DateTimeImmutable($madeAt))->format('Uv'), "\n";
echo 'recent ', implode(' ', $recent), "\n";
echo 'types PDO: ', get_debug_type($photoId), ' ', get_debug_type($tagId), "\n";
echo 'tags ', $tagId, "\n";

// lastInsertId() is lastval(), which next_id() leaves alone.
try {
    $db->lastInsertId();
    echo "last_insert_id none\n";
} catch (PDOException $error) {
    echo 'last_insert_id ', $error->getCode(), "\n";
}
column('CREATE TEMPORARY TABLE logged (nr serial)');
column('INSERT INTO logged DEFAULT VALUES');
column("INSERT INTO photos (title) VALUES ('other')");
echo 'last_insert_id_of_other ', $db->lastInsertId(), "\n";
column("DELETE FROM photos WHERE title = 'other'");
