<?php
// Eloquent without the rest of Laravel, and PDO, which it uses: lastInsertId() does not know of next_id().

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
$pdo = DB::connection()->getPdo();

DB::schema()->create('photos', function (Blueprint $table) {
    $table->bigInteger('id')->primary()->default(new Expression('next_id(5)'));
    $table->text('title');
});
DB::statement('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id(5))');
DB::schema()->create('plain', fn (Blueprint $table) => $table->id());

// $incrementing is true: create() leaves the key out, and reads it back.
class Photo extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

class Tag extends Model
{
    public $timestamps = false;
}

class TextTag extends Tag
{
    protected $table = 'tags';
    protected $keyType = 'string';
}

$photo = Photo::create(['title' => 'one']);
$many = array_column(DB::select('SELECT next_ids(5, 1000) AS id'), 'id');
Photo::insert(array_map(fn ($n, $id) => ['id' => $id, 'title' => "many $n"], array_keys($many), $many));
$tag = Tag::create();
$found = TextTag::find($tag->id);
$hourAgo = new DateTimeImmutable('-1 hour');
$bound = fn ($time) => DB::selectOne('SELECT snowflake_min_id(?) AS id', [$time])->id;
$withZone = $hourAgo->format(DATE_RFC3339_EXTENDED);
$read = fn ($table) => get_debug_type($pdo->query("SELECT id FROM $table LIMIT 1")->fetchColumn());

echo 'version PDO ', phpversion('pdo_pgsql'), "\n";
echo 'types PDO: ', $read('photos'), ' ', $read('tags'), "\n";
echo 'types Eloquent: ', get_debug_type($photo->id), ' ', get_debug_type($tag->id), "\n";
echo 'tags ', $tag->id, ' ', $found->id, "\n";
echo 'one ', $photo->id, "\n";
echo 'many ', implode(' ', $many), "\n";
echo 'hours_off_without_zone ', round(($bound($hourAgo) - $bound($withZone)) / 2 ** 23 / 3600000), "\n";
echo 'json ', $tag->toJson(), ' ', $found->toJson(), "\n";

try {
    $lastId = $pdo->lastInsertId();
} catch (PDOException $error) {
    $lastId = $error->getCode();
}
echo 'last_insert_id ', $lastId, "\n";
echo 'id_of_plain ', DB::table('plain')->insertGetId([]), "\n";
DB::table('tags')->insert(['id' => $photo->id]);
echo 'last_insert_id_after_plain ', $pdo->lastInsertId(), "\n";
DB::table('tags')->delete($photo->id);
