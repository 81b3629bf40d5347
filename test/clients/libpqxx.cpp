// libpqxx: an ID is read as 64 bits, from a prepared statement and from its pipeline of statements.

#include <cstdint>
#include <iostream>
#include <pqxx/pqxx>
#include <vector>

int main()
{
    pqxx::connection db;
    pqxx::work work{db};
    db.prepare("insert", "INSERT INTO photos (title) VALUES ($1) RETURNING id");
    auto one = work.exec_prepared("insert", "one")[0][0].as<std::int64_t>();
    auto tag = work.exec_params("INSERT INTO tags (id) VALUES ($1) RETURNING id", one)[0][0].as<std::int64_t>();

    pqxx::pipeline pipeline{work};
    std::vector<pqxx::pipeline::query_id> sent;
    for (int n = 0; n < 1000; n++)
        sent.push_back(pipeline.insert("INSERT INTO photos (title) VALUES ('many " + std::to_string(n) + "') RETURNING id"));
    std::cout << "many";
    for (auto query : sent)
        std::cout << ' ' << pipeline.retrieve(query)[0][0].as<std::int64_t>();
    pipeline.complete();
    work.commit();

    std::cout << "\none " << one << "\ntags " << tag << "\n";
    std::cout << "types libpqxx: int64_t int64_t\nversion libpqxx " << PQXX_VERSION << "\n";
}
