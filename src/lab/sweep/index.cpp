#include "lab/sweep/index.h"

#include <sqlite3.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "norma/core/error.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCreate = R"sql(
create table if not exists runs (
  id text primary key, status text not null, scheme text, layers integer, width integer, lr real, warmup integer,
  seed integer, axes text, steps integer, last_step integer, final_loss real, best_loss real, evaluation_loss real,
  best_evaluation_loss real, diverged_at_step integer, diverged_because text, first_bad_wire text,
  stopped_at_step integer, spikes integer, tokens_per_second real, verdict text, path text))sql";

constexpr const char* kPut = R"sql(
insert or replace into runs values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
  ?19, ?20, ?21, ?22, ?23))sql";

// One prepared statement, its values bound in order.
class SqlStatement {
 public:
  SqlStatement(sqlite3* database, const char* sql) { sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr); }
  SqlStatement(const SqlStatement&) = delete;
  ~SqlStatement() { sqlite3_finalize(statement_); }

  void text(const std::string& value) {
    if (value.empty()) {
      sqlite3_bind_null(statement_, ++bound_);
    } else {
      sqlite3_bind_text(statement_, ++bound_, value.c_str(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    }
  }
  void whole(std::int64_t value) { sqlite3_bind_int64(statement_, ++bound_, value); }
  void whole_or_null(std::int64_t value) { value > 0 ? whole(value) : null(); }
  void number(double value) { std::isfinite(value) ? void(sqlite3_bind_double(statement_, ++bound_, value)) : null(); }
  void number(const std::optional<double>& value) { number(value.value_or(std::nan(""))); }
  void null() { sqlite3_bind_null(statement_, ++bound_); }

  // True when it went through; the statement is then ready for the next row.
  bool run() {
    const bool done = statement_ != nullptr && sqlite3_step(statement_) == SQLITE_DONE;
    if (statement_ != nullptr) sqlite3_reset(statement_);
    bound_ = 0;
    return done;
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

}  // namespace

SweepIndex::SweepIndex(const fs::path& path) : path_(path) {
  try {
    open();
    if (prepare()) return;
    close();
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(path.string() + suffix);
    open();
    if (!prepare()) fail_with("create");
  } catch (...) {
    close();  // SQLite gives a handle even where it cannot open the file
    throw;
  }
}

SweepIndex::~SweepIndex() { close(); }

void SweepIndex::open() {
  if (sqlite3_open(path_.c_str(), &database_) != SQLITE_OK) fail_with("open");
  sqlite3_busy_timeout(database_, 10'000);
  // With the folder, once the journal is gone: after the loss of power it would come back and undo what was committed.
  sqlite3_exec(database_, "pragma synchronous = extra", nullptr, nullptr, nullptr);
}

void SweepIndex::close() {
  sqlite3_close(database_);
  database_ = nullptr;
}

bool SweepIndex::prepare() {
  if (sqlite3_exec(database_, kCreate, nullptr, nullptr, nullptr) != SQLITE_OK) return false;
  const SqlStatement fits(database_, kPut);  // an index of another version has other columns
  if (sqlite3_errcode(database_) != SQLITE_OK) return false;
  // Not quick_check: a row that does not match the index of ids would pass.
  bool healthy = false;
  const auto check = [](void* out, int, char** values, char**) {
    *static_cast<bool*>(out) = values[0] != nullptr && std::string_view(values[0]) == "ok";
    return 0;
  };
  return sqlite3_exec(database_, "pragma integrity_check(1)", check, &healthy, nullptr) == SQLITE_OK && healthy;
}

void SweepIndex::execute(const std::string& sql) {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail_with("write to");
}

void SweepIndex::fail_with(const std::string& attempt) const {
  fail("cannot {} the index '{}': {}", attempt, path_.string(),
       database_ == nullptr ? "out of memory" : sqlite3_errmsg(database_));
}

void SweepIndex::forget_unless(const std::function<bool(const std::string&)>& known) {
  std::vector<std::string> ids;
  const auto add = [](void* all, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(all)->emplace_back(values[0] == nullptr ? "" : values[0]);
    return 0;
  };
  if (sqlite3_exec(database_, "select id from runs", add, &ids, nullptr) != SQLITE_OK) fail_with("read");
  for (const std::string& id : ids) {
    if (known(id)) continue;
    SqlStatement row(database_, "delete from runs where id is ?1");
    row.text(id);
    if (!row.run()) fail_with("write to");
  }
}

void SweepIndex::put(std::span<const RunOutcome> outcomes) {
  execute("begin immediate");
  SqlStatement row(database_, kPut);
  for (const RunOutcome& run : outcomes) {
    row.text(run.id);
    row.text(std::string(name_of(run.status)));
    row.text(run.scheme);
    row.whole(run.layers);
    row.whole(run.width);
    row.number(run.lr);
    row.whole(run.warmup);
    row.whole(run.seed);
    row.text(nlohmann::json(run.axes).dump());
    row.whole(run.steps);
    row.whole(run.last_step);
    row.number(run.final_loss);
    row.number(run.best_loss);
    row.number(run.evaluation_loss);
    row.number(run.best_evaluation_loss);
    row.whole_or_null(run.diverged_at_step);
    row.text(run.diverged_because);
    row.text(run.first_bad_wire);
    row.whole_or_null(run.stopped_at_step);
    row.whole(run.spikes);
    row.number(run.tokens_per_second);
    row.text(run.verdict());
    row.text("runs/" + run.id);
    if (!row.run()) {
      const std::string why = sqlite3_errmsg(database_);
      sqlite3_exec(database_, "rollback", nullptr, nullptr, nullptr);
      fail("cannot write to the index '{}': {}", path_.string(), why);
    }
  }
  commit();
}

void SweepIndex::set_status(std::span<const std::string> ids, RunStatus status) {
  execute("begin immediate");
  SqlStatement row(database_, "update runs set status = ?1 where id = ?2");
  for (const std::string& id : ids) {
    row.text(std::string(name_of(status)));
    row.text(id);
    if (!row.run()) {
      const std::string why = sqlite3_errmsg(database_);
      sqlite3_exec(database_, "rollback", nullptr, nullptr, nullptr);
      fail("cannot write to the index '{}': {}", path_.string(), why);
    }
  }
  commit();
}

// One that fails, as on a full disk, must not leave its half behind in the journal.
void SweepIndex::commit() {
  if (sqlite3_exec(database_, "commit", nullptr, nullptr, nullptr) == SQLITE_OK) return;
  const std::string why = sqlite3_errmsg(database_);
  sqlite3_exec(database_, "rollback", nullptr, nullptr, nullptr);
  fail("cannot write to the index '{}': {}", path_.string(), why);
}

}  // namespace norma
