<?php
// Doctrine: its strategies use lastInsertId() or nextval(), so a generator takes the ID before the row.

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Id\AbstractIdGenerator;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
require_once 'Doctrine/ORM/autoload.php';

class NextId extends AbstractIdGenerator
{
    public function generateId($em, $entity): mixed
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

// What does not go with next_id(): another strategy, and a default among the column's options
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

$db = DriverManager::getConnection(['driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'user' => getenv('PGUSER'), 'dbname' => getenv('PGDATABASE')]);
$em = new EntityManager($db, ORMSetup::createAttributeMetadataConfiguration([__FILE__], true));
$em->getEventManager()->addEventListener('postGenerateSchemaTable', new AddDefault());
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

echo 'types Doctrine: ', get_debug_type($photo->id), ' ', get_debug_type($found->id), "\n";
echo 'tags ', $tag->id, ' ', $found->id, "\n";
echo 'one ', $photo->id, "\n";
echo 'many ', implode(' ', array_column($many, 'id')), "\n";
$hoursOff = ($bound('datetime_immutable') - $bound('datetimetz_immutable')) / 2 ** 23 / 3600000;
echo 'hours_off_without_zone ', round($hoursOff), "\n";

// The error of what fails: its SQLSTATE, or its text
$outcome = function ($action) {
    try {
        return $action();
    } catch (Exception $error) {
        return method_exists($error, 'getSQLState') ? $error->getSQLState() : $error->getMessage();
    }
};
$differences = fn () => count($tool->getUpdateSchemaSql($metadata(Photo::class, Tag::class), true));
echo 'differences_unless_registered ', strstr($outcome($differences), ' type', true), "\n";
$db->getDatabasePlatform()->registerDoctrineTypeMapping('snowflake', 'bigint');
echo 'differences ', $differences(), "\n";

$copied = implode($tool->getCreateSchemaSql($metadata(Copied::class)));
echo 'defaults_of_copied ', substr_count($copied, 'DEFAULT next_id'), "\n";
$tool->createSchema($metadata(Identity::class));
$db->executeStatement('ALTER TABLE identity ALTER id SET DEFAULT next_id(5)');
$em->persist($identity = new Identity());
echo 'identity ', $outcome($em->flush(...)) ?? $identity->id, "\n";
