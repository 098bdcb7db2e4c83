// index.sqlite: one row for each run of a sweep, for whoever wants to ask questions in SQL. The run directories are the
// truth; the index is made anew from them whenever it is missing or damaged.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "norma/lab/sweep_outcome.h"

struct sqlite3;

namespace norma {

class SweepIndex {
 public:
  explicit SweepIndex(const std::filesystem::path& path);
  SweepIndex(SweepIndex&&) = delete;
  ~SweepIndex();

  // Drops the rows of runs that are not there: damage in the file that SQLite does not notice.
  void forget_unless(const std::function<bool(const std::string&)>& known);
  // Replaces the rows of these runs, all or none.
  void put(std::span<const RunOutcome> outcomes);
  void set_status(std::span<const std::string> ids, RunStatus status);

 private:
  void open();
  void close();
  bool prepare();  // false: the file is not a healthy index
  void execute(const std::string& sql);
  void commit();
  [[noreturn]] void fail_with(const std::string& attempt) const;

  std::filesystem::path path_;
  sqlite3* database_ = nullptr;
};

}  // namespace norma
