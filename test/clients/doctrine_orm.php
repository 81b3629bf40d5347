<?php
// Doctrine.  test/external/clients.pl compares what this prints with the tables.

use Doctrine\DBAL\Types\BigIntType;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

require_once 'Doctrine/ORM/autoload.php';

// Doctrine's strategies use lastInsertId() or nextval(), so a generator takes the
// ID first.
class NextId extends AbstractIdGenerator
{
    public function generateId($em, $entity)
    {
        return $em->getConnection()->fetchOne('SELECT next_id(5)');
    }
}

#[ORM\Entity]
#[ORM\Table('albums')]
class Album
{
    #[ORM\Id, ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue('CUSTOM'), ORM\CustomIdGenerator(NextId::class)]
    public ?string $id = null;

    #[ORM\ManyToOne(targetEntity: Photo::class)]
    public ?Photo $cover = null;

    public function __construct(#[ORM\Column(type: 'text')] public string $title) {}
}

#[ORM\Entity]
#[ORM\Table('photos')]
class Photo
{
    #[ORM\Id, ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue('CUSTOM'), ORM\CustomIdGenerator(NextId::class)]
    public ?string $id = null;

    public function __construct(
        #[ORM\Column(type: 'text')] public string $title,
        #[ORM\ManyToOne(targetEntity: Album::class)] public ?Album $album = null) {}
}

// The type snowflake is for others to make.
#[ORM\Entity]
#[ORM\Table('tags')]
class Tag
{
    #[ORM\Id, ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue('CUSTOM'), ORM\CustomIdGenerator(NextId::class)]
    public ?string $id = null;
}

// What does not go with next_id(): two strategies, and a default among the column's
// options
#[ORM\Entity]
class Auto
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue('AUTO')]
    public ?string $id = null;
}

#[ORM\Entity]
class Identity
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue('IDENTITY')]
    public ?string $id = null;
}

#[ORM\Entity]
class Original
{
    #[ORM\Id, ORM\Column(type: 'bigint', options: ['default' => 'next_id((5)::bigint)'])]
    public ?string $id = null;
    #[ORM\ManyToOne(targetEntity: Original::class)]
    public ?Original $copy = null;
}

// The default is for other programs.  It is set here, as Doctrine would copy an
// option of the column to all columns that refer to it.  It is written as
// PostgreSQL keeps it, for the schema tool, which compares texts.
class AddDefault
{
    public function postGenerateSchemaTable($args)
    {
        if ($args->getClassMetadata()->customGeneratorDefinition) {
            $args->getClassTable()->getColumn('id')->setDefault('next_id((5)::bigint)');
        }
    }
}

$config = ORMSetup::createAttributeMetadataConfiguration([__FILE__], true);
$em = EntityManager::create(['driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'user' => getenv('PGUSER'), 'dbname' => getenv('PGDATABASE')], $config);
$em->getEventManager()->addEventListener('postGenerateSchemaTable', new AddDefault());
$db = $em->getConnection();
$tool = new SchemaTool($em);
$tables = array_map($em->getClassMetadata(...), [Album::class, Photo::class]);
$tool->createSchema($tables);
$db->executeStatement("INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')");

// The ID is there with persist(), before the row.
$photo = new Photo('draft');
$em->persist($photo);
$em->flush();

// Insert or update by ID, which Doctrine leaves to SQL.
$db->executeStatement('INSERT INTO photos (id, title) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title',
    [$photo->id, 'first']);

// Rows that refer to each other: Doctrine inserts both, and updates one.
$album = new Album('album');
$album->cover = new Photo('cover', $album);
$em->persist($album);
$em->persist($album->cover);

// Many rows, each of which takes an ID and is an INSERT of its own.
$bulk = [];
for ($n = 0; $n < 10000; $n++) {
    $em->persist($bulk[] = new Photo("bulk $n"));
}
$em->flush();

// A page of the newest, and the one that follows it.
$page = $em->createQuery('SELECT p FROM Photo p ORDER BY p.id DESC')->setMaxResults(20)->getResult();
$nextPage = $em->createQuery('SELECT p FROM Photo p WHERE p.id < :last ORDER BY p.id DESC')
    ->setParameter('last', end($page)->id)->setMaxResults(20)->getResult();

// When a row was made, and the rows of the last hour: with the type, which keeps
// the zone.
$madeAt = new DateTimeImmutable($db->fetchOne('SELECT snowflake_timestamp(?)', [$photo->id]));
$hourAgo = new DateTimeImmutable('-1 hour');
$since = 'SELECT id FROM photos WHERE id >= snowflake_min_id(?) ORDER BY id';
$recent = $db->fetchFirstColumn($since, [$hourAgo], ['datetimetz_immutable']);

$ids = fn ($rows) => implode(' ', array_map(fn ($row) => $row->id, $rows));
echo 'version Doctrine ', Doctrine\ORM\Version::VERSION, "\n";
echo 'one ', $photo->id, "\n";
echo 'pair ', $album->id, ' ', $album->cover->id, "\n";
echo 'bulk ', $ids($bulk), "\n";
echo 'pages ', $ids([...$page, ...$nextPage]), "\n";
echo 'made ', $madeAt->format('Uv'), "\n";
echo 'recent ', implode(' ', $recent), "\n";
echo 'without_zone ', count($db->fetchFirstColumn($since, [$hourAgo], ['datetime_immutable'])), "\n";

// An ID of the type snowflake is a string.  The schema tool knows nothing of the type, so name another, or it fails.
$db->executeStatement('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id((5)::bigint))');
$em->persist($tag = new Tag());
$em->flush();
$em->clear();
$found = $em->find(Tag::class, $tag->id);
echo 'types Doctrine: ', get_debug_type($photo->id), ' ', get_debug_type($found->id), "\n";
echo 'tags ', $tag->id, ' ', $found->id, "\n";
$tables[] = $em->getClassMetadata(Tag::class);
try {
    $tool->getUpdateSchemaSql($tables, true);
    echo "unknown_type done\n";
} catch (Doctrine\DBAL\Exception $error) {
    echo 'unknown_type ', $error->getMessage(), "\n";
}
$db->getDatabasePlatform()->registerDoctrineTypeMapping('snowflake', 'bigint');
echo 'difference ', count($tool->getUpdateSchemaSql($tables, true)), "\n";

$traps = array_map($em->getClassMetadata(...), [Auto::class, Identity::class, Original::class]);
preg_match_all('/\w+ BIGINT DEFAULT next_id/', implode($tool->getCreateSchemaSql($traps)), $defaults);
echo 'copied ', count($defaults[0]), "\n";
$tool->createSchema($traps);
// The strategies on tables whose default is next_id()
$db->executeStatement('ALTER TABLE auto ALTER id SET DEFAULT next_id(5); ALTER TABLE identity ALTER id SET DEFAULT next_id(5)');
$em->persist($auto = new Auto());
$em->flush();
echo 'auto ', $auto->id, "\n";
try {
    $em->persist($identity = new Identity());
    $em->flush();
    echo 'identity ', $identity->id, ' ', $db->fetchOne('SELECT id FROM identity'), "\n";
} catch (Exception $error) {
    echo 'identity ', $error->getSQLState(), "\n";
}
