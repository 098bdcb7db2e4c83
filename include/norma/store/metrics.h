// metrics.jsonl: one JSON object per line, in the order of the steps. Numbers are written with as few digits as bring
// the same double back. NaN, Infinity and -Infinity stand bare, as Python's json and JSON5 read and write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "norma/store/flush_policy.h"
#include "norma/store/folder.h"

namespace norma {

class AppendFile;

using MetricValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

struct Metric {
  std::string name;
  MetricValue value;
};

struct MetricRecord {
  std::int64_t step = 0;
  std::vector<Metric> metrics;  // in the order of the line

  const MetricValue* find(std::string_view name) const;  // null when there is none
  double number(
      std::string_view name) const;  // throws Error when there is none, with the nearest name, or it is no number
};

class MetricsLog {
 public:
  // A new log; throws Error when the file exists.
  static MetricsLog create(const std::filesystem::path& path, FlushPolicy policy = {});

  // The log of a run that goes on after `step`: later records go, as does a line that a kill cut short. One system call
  // shortens the file, so a kill during it leaves the old end or the new one. Throws Error, and leaves the file as it
  // is, when a record up to `step` is damaged or when there is none of a step in `expected` (ascending): the log was
  // emptied, cut or removed; or when it is not what was sealed. Without expectations a missing file is begun anew.
  static MetricsLog resume(const std::filesystem::path& path, std::int64_t step, FlushPolicy policy = {});
  static MetricsLog resume(const Folder& folder, const std::string& name, std::int64_t step, FlushPolicy policy = {},
                           std::span<const std::int64_t> expected = {});

  MetricsLog(MetricsLog&&) noexcept;
  MetricsLog& operator=(MetricsLog&&) noexcept;
  ~MetricsLog();  // flushes, but cannot report an error

  // Throws Error when `step` is below the last one, a name is repeated or "step", or the disk is full; the log then
  // still ends with a whole line.
  void append(std::int64_t step, std::span<const Metric> metrics);

  void flush();  // to the operating system: survives a kill
  void sync();   // to disk: survives the loss of power
  // The same, and writes down how long the log is and what it hashes to (metrics.sum), so that damage is noticed when
  // the run is resumed. Call it before a checkpoint of the same step.
  void seal();

  std::int64_t last_step() const { return last_step_; }  // -1 in an empty log

 private:
  MetricsLog(Folder folder, std::unique_ptr<AppendFile> file, std::int64_t last_step);

  Folder folder_;
  std::unique_ptr<AppendFile> file_;
  std::int64_t last_step_;
};

// Throws Error when the log in a run's directory does not begin with what was sealed last. Without a seal there is
// nothing to compare.
void verify_metrics(const Folder& folder, const std::string& name);

// Every whole line; a last one without an end, which a living run may be about to write, is left out. Throws Error with
// the line's number on anything else.
std::vector<MetricRecord> read_metrics(const std::filesystem::path& path);

}  // namespace norma
