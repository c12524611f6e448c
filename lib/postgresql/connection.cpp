// PostgreSQL as a backend, by its own driver (libpq).
#include <libpq-fe.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "lib/server/backend.hpp"

namespace netdyno {
namespace {

[[noreturn]] void die_of(PGconn* connection) {
  std::fprintf(stderr, "the backend PostgreSQL: %s", PQerrorMessage(connection));
  std::exit(1);
}

/// A statement is prepared once, as a service would have it. pg_sleep takes at least as long as it says, and counts
/// whole milliseconds.
class PostgresqlConnection final : public BackendConnection {
 public:
  explicit PostgresqlConnection(const Url& backend)
      : connection_(PQconnectdb(("host=" + backend.host + " port=" + std::to_string(backend.port) +
                                 " user=netdyno dbname=postgres sslmode=disable gssencmode=disable")
                                    .c_str()),
                    PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) die_of(connection_.get());
    const std::unique_ptr<PGresult, decltype(&PQclear)> prepared{
        PQprepare(connection_.get(), statement, "SELECT pg_sleep($1)", 1, nullptr), PQclear};
    if (PQresultStatus(prepared.get()) != PGRES_COMMAND_OK) die_of(connection_.get());
  }

  int fd() const override { return PQsocket(connection_.get()); }

  void ask(std::chrono::nanoseconds duration) override {
    const std::string seconds = std::to_string(std::chrono::duration<double>{duration}.count());
    const char* const values[] = {seconds.c_str()};
    if (PQsendQueryPrepared(connection_.get(), statement, 1, values, nullptr, nullptr, 0) != 1 ||
        PQflush(connection_.get()) != 0)
      die_of(connection_.get());
  }

  bool take_answer() override {
    if (PQconsumeInput(connection_.get()) != 1) die_of(connection_.get());
    while (PQisBusy(connection_.get()) == 0)
      if (!take_result()) return true;
    return false;
  }

  void await_answer() override {
    while (take_result()) {
    }
  }

 private:
  /// False after the last.
  bool take_result() {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result{PQgetResult(connection_.get()), PQclear};
    if (result && PQresultStatus(result.get()) != PGRES_TUPLES_OK) die_of(connection_.get());
    return result != nullptr;
  }

  static constexpr const char* statement = "wait";
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

}  // namespace
}  // namespace netdyno

extern "C" __attribute__((visibility("default"))) netdyno::BackendConnection* netdyno_connect_to_postgresql(
    const netdyno::Url& backend) {
  return new netdyno::PostgresqlConnection{backend};
}
