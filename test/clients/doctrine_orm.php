<?php
// Doctrine: its strategies use lastInsertId() or nextval(), so a generator takes the ID before the row.

use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

require_once 'Doctrine/ORM/autoload.php';

class NextId extends AbstractIdGenerator
{
    public function generateId($em, $entity)
    {
        return $em->getConnection()->fetchOne('SELECT next_id(5)');
    }
}

// The default is for other programs.  It is set here, as Doctrine would copy an option of the column to all columns that
// refer to it.  It is written as PostgreSQL stores it, for the schema tool, which compares texts.
class AddDefault
{
    public function postGenerateSchemaTable($args)
    {
        if ($args->getClassMetadata()->customGeneratorDefinition) {
            $args->getClassTable()->getColumn('id')->setDefault('next_id((5)::bigint)');
        }
    }
}

trait Key
{
    #[ORM\Id, ORM\Column(type: 'bigint'), ORM\GeneratedValue('CUSTOM'), ORM\CustomIdGenerator(NextId::class)]
    public ?string $id = null;
}

#[ORM\Entity, ORM\Table('photos')]
class Photo
{
    use Key;
    #[ORM\ManyToOne(targetEntity: Photo::class)]
    public ?Photo $original = null;

    public function __construct(#[ORM\Column(type: 'text')] public string $title) {}
}

#[ORM\Entity, ORM\Table('tags')]
class Tag { use Key; }

// What does not go with next_id(): two strategies, and a default among the column's options
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
class Copied
{
    #[ORM\Id, ORM\Column(type: 'bigint', options: ['default' => 'next_id((5)::bigint)'])]
    public ?string $id = null;
    #[ORM\ManyToOne(targetEntity: Copied::class)]
    public ?Copied $original = null;
}

$config = ORMSetup::createAttributeMetadataConfiguration([__FILE__], true);
$em = EntityManager::create(['driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'user' => getenv('PGUSER'), 'dbname' => getenv('PGDATABASE')], $config);
$em->getEventManager()->addEventListener('postGenerateSchemaTable', new AddDefault());
$db = $em->getConnection();
$tool = new SchemaTool($em);
$metadata = fn (...$classes) => array_map($em->getClassMetadata(...), $classes);
$tool->createSchema($metadata(Photo::class));
$db->executeStatement('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id((5)::bigint))');

$em->persist($photo = new Photo('one'));
$em->persist($tag = new Tag());
for ($n = 0; $n < 1000; $n++) {
    $em->persist($many[] = new Photo("many $n"));
}
$em->flush();
$em->clear();
$found = $em->find(Tag::class, $tag->id);
$hourAgo = new DateTimeImmutable('-1 hour');
$bound = fn ($type) => $db->fetchOne('SELECT snowflake_min_id(?)', [$hourAgo], [$type]);

echo 'version Doctrine ', Doctrine\ORM\Version::VERSION, "\n";
echo 'types Doctrine: ', get_debug_type($photo->id), ' ', get_debug_type($found->id), "\n";
echo 'tags ', $tag->id, ' ', $found->id, "\n";
echo 'one ', $photo->id, "\n";
echo 'many ', implode(' ', array_column($many, 'id')), "\n";
echo 'hours_off_without_zone ', round(($bound('datetime_immutable') - $bound('datetimetz_immutable')) / 2 ** 23 / 3600000), "\n";

function outcome($action)
{
    try {
        return $action();
    } catch (Exception $error) {
        return method_exists($error, 'getSQLState') && $error->getSQLState() ? $error->getSQLState() : $error->getMessage();
    }
}

$differences = fn () => count($tool->getUpdateSchemaSql($metadata(Photo::class, Tag::class), true));
echo 'schema_tool ', outcome($differences), "\n";
$db->getDatabasePlatform()->registerDoctrineTypeMapping('snowflake', 'bigint');
echo 'differences ', $differences(), "\n";

$traps = $metadata(Auto::class, Identity::class, Copied::class);
echo 'defaults_of_copied ', substr_count(implode($tool->getCreateSchemaSql($traps)), 'DEFAULT next_id'), "\n";
$tool->createSchema($traps);
$db->executeStatement('ALTER TABLE auto ALTER id SET DEFAULT next_id(5); ALTER TABLE identity ALTER id SET DEFAULT next_id(5)');
foreach (['auto' => new Auto(), 'identity' => new Identity()] as $strategy => $entity) {
    $em->persist($entity);
    echo $strategy, ' ', outcome(function () use ($em, $entity) { $em->flush(); return $entity->id; }), "\n";
}
