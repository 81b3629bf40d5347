<?php
// Eloquent, without the rest of Laravel.  test/external/clients.pl compares what this prints
// with the tables.

use Illuminate\Database\Capsule\Manager as DB;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Query\Expression;
use Illuminate\Database\Schema\Blueprint;

error_reporting(E_ALL & ~E_DEPRECATED);
require_once 'Illuminate/Database/autoload.php';

$capsule = new DB();
$capsule->addConnection(['driver' => 'pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'username' => getenv('PGUSER'), 'database' => getenv('PGDATABASE'), 'charset' => 'utf8']);
$capsule->setAsGlobal();
$capsule->bootEloquent();

// bigInteger() and not id(), which makes a bigserial
DB::schema()->create('albums', function (Blueprint $table) {
    $table->bigInteger('id')->primary()->default(new Expression('next_id(5)'));
    $table->text('title');
    $table->bigInteger('cover_id')->nullable();
});
DB::schema()->create('photos', function (Blueprint $table) {
    $table->bigInteger('id')->primary()->default(new Expression('next_id(5)'));
    $table->text('title');
    $table->foreignId('album_id')->nullable()->constrained();
});
DB::schema()->table('albums', function (Blueprint $table) {
    $table->foreign('cover_id')->references('id')->on('photos')->deferrable()->initiallyImmediate(false);
});
DB::statement("INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')");

// The default of $incrementing, true: create() leaves the column out and reads it
// back with RETURNING.
class Album extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

class Photo extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

// The column's default makes the ID.
$photo = Photo::create(['title' => 'draft']);

// Insert or update by ID.
Photo::upsert([['id' => $photo->id, 'title' => 'first']], ['id'], ['title']);

// IDs taken first, for rows that refer to each other.
DB::transaction(function () use (&$albumId, &$coverId) {
    [$albumId, $coverId] = array_column(DB::select('SELECT next_ids(5, 2) AS id'), 'id');
    Album::create(['id' => $albumId, 'title' => 'album', 'cover_id' => $coverId]);
    Photo::create(['id' => $coverId, 'title' => 'cover', 'album_id' => $albumId]);
});

// Many rows: their IDs in one call, then INSERTs of a thousand.
$bulk = array_column(DB::select('SELECT next_ids(5, 10000) AS id'), 'id');
$rows = array_map(fn ($n, $id) => ['id' => $id, 'title' => "bulk $n"], array_keys($bulk), $bulk);
foreach (array_chunk($rows, 1000) as $chunk) {
    Photo::insert($chunk);
}

// A page of the newest, and the one that follows it.
$page = Photo::orderByDesc('id')->limit(20)->get();
$nextPage = Photo::where('id', '<', $page->last()->id)->orderByDesc('id')->limit(20)->get();

// When a row was made, and the rows of the last hour: as text with the zone, which
// a bound DateTime loses.
$madeAt = new DateTimeImmutable(DB::selectOne('SELECT snowflake_timestamp(?) AS at', [$photo->id])->at);
$hourAgo = new DateTimeImmutable('-1 hour');
$since = fn ($time) => Photo::whereRaw('id >= snowflake_min_id(?)', [$time])->orderBy('id')->get();
$recent = $since($hourAgo->format(DATE_RFC3339_EXTENDED));

// An ID of the type snowflake: Eloquent makes an int of a key, unless the model says that it is a string.
DB::statement('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id(5))');
class Tag extends Model
{
    public $timestamps = false;
}
class TextTag extends Tag
{
    protected $table = 'tags';
    protected $keyType = 'string';
}
// A column that refers to a key is no key.
class TextPhoto extends Photo
{
    protected $table = 'photos';
    protected $casts = ['album_id' => 'string'];
}
$tag = Tag::create();
$textTag = TextTag::find($tag->id);

$ids = fn ($rows) => implode(' ', $rows->pluck('id')->all());
echo 'one ', $photo->id, "\n";
echo 'pair ', $albumId, ' ', $coverId, "\n";
echo 'bulk ', implode(' ', $bulk), "\n";
echo 'pages ', $ids($page), ' ', $ids($nextPage), "\n";
echo 'made ', $madeAt->format('Uv'), "\n";
echo 'recent ', $ids($recent), "\n";
echo 'types Eloquent: ', get_debug_type($photo->id), ' ', get_debug_type($tag->id), "\n";
echo 'tags ', $tag->id, ' ', $textTag->id, "\n";
echo 'json ', $tag->toJson(), ' ', $textTag->toJson(), "\n";
echo 'refers ', Photo::find($coverId)->setVisible(['album_id'])->toJson(), ' ',
    TextPhoto::find($coverId)->setVisible(['album_id'])->toJson(), "\n";
echo 'without_zone ', count($since($hourAgo)), "\n";

// What id() makes
DB::schema()->create('plains', fn (Blueprint $table) => $table->id());
echo 'plain ', DB::table('plains')->insertGetId([]), "\n";
// lastInsertId() of the connection
try {
    DB::table('photos')->insert(['title' => 'other']);
    echo 'last_insert_id ', DB::connection()->getPdo()->lastInsertId(), "\n";
} catch (PDOException $error) {
    echo 'last_insert_id ', $error->getCode(), "\n";
}
DB::table('photos')->where('title', 'other')->delete();
