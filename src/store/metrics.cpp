#include "norma/store/metrics.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/core/names.h"
#include "norma/store/atomic_file.h"
#include "store/append_file.h"
#include "store/metrics_line.h"
#include "store/xxh64.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();

// Calls visit(line, its number, its offset) for each line that has an end.
template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
  std::size_t at = 0;
  for (std::size_t number = 1;; ++number) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return;
    visit(text.substr(at, end - at), number, at);
    at = end + 1;
  }
}

struct Kept {
  std::uint64_t bytes = 0;
  std::int64_t last_step = -1;
  std::vector<std::int64_t> steps = {};  // each once
};

// The records up to `step` stand at the front of the log. What follows them goes, whole or damaged; but a record up to
// `step` behind something that must go means that the log is not what we wrote.
Kept records_up_to(std::int64_t step, std::string_view text, const fs::path& path) {
  Kept kept;
  std::optional<std::string> gap;  // why the first line that goes must go
  for_each_line(text, [&](std::string_view line, std::size_t number, std::size_t offset) {
    std::optional<MetricRecord> record;
    try {
      record = parse_metrics_line(line);
    } catch (const Error& error) {
      if (!gap) gap = fmt::format("line {} is damaged ({})", number, error.what());
      return;
    }
    if (record->step > step) {
      if (!gap) gap = fmt::format("line {} is of step {}", number, record->step);
      return;
    }
    if (gap) fail("'{}': {}, but line {} is of step {}", path.string(), *gap, number, record->step);
    if (record->step < kept.last_step)
      fail("'{}', line {}: step {} follows step {}", path.string(), number, record->step, kept.last_step);
    kept.bytes = offset + line.size() + 1;
    if (record->step != kept.last_step) kept.steps.push_back(record->step);
    kept.last_step = record->step;
  });
  return kept;
}

void require_steps(std::span<const std::int64_t> expected, const Kept& kept, std::int64_t step, const fs::path& path) {
  auto next = kept.steps.begin();
  for (const std::int64_t wanted : expected) {
    next = std::lower_bound(next, kept.steps.end(), wanted);
    if (next == kept.steps.end() || *next != wanted)
      fail(
          "'{}' has no record of step {}, though the checkpoint is of step {}: it was emptied, cut or removed, and to "
          "go "
          "on would leave a gap in the history; put it back, or begin anew in another directory",
          path.string(), wanted, step);
  }
}

// "metrics.jsonl" is sealed by "metrics.sum": bytes and XXH64 of what was on disk at the last checkpoint.
std::string seal_name(const std::string& name) { return fs::path(name).stem().string() + ".sum"; }
std::string seal_text(std::uint64_t bytes, std::uint64_t digest) {
  return fmt::format("{} xxh64:{:016x}\n", bytes, digest);
}

void write_seal(const Folder& folder, const std::string& name, const std::string& seal) {
  const std::string file = seal_name(name);
  const bool same = folder.has_file(file) && folder.read(file) == seal;
  if (!same) write_atomically(folder, file, seal);
}

std::string seal_of(std::string_view text) {
  Xxh64 hash;
  hash.update(std::as_bytes(std::span(text)));
  return seal_text(text.size(), hash.digest());
}

void require_sealed(const Folder& folder, const std::string& name, std::string_view text) {
  const std::string file = seal_name(name);
  if (folder.kind(file) == PathKind::nothing) return;
  const std::string seal = folder.read(file);
  std::uint64_t bytes = 0;
  std::from_chars(seal.data(), seal.data() + seal.size(), bytes);
  if (bytes > text.size() || seal_of(text.substr(0, bytes)) != seal)
    fail(
        "'{}' is not what was written to it: its first {} bytes should be as '{}' says; to go on would falsify the "
        "history; put it back, or begin anew in another directory",
        (folder / name).string(), bytes, (folder / file).string());
}

}  // namespace

const MetricValue* MetricRecord::find(std::string_view name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
  return found == metrics.end() ? nullptr : &found->value;
}

double MetricRecord::number(std::string_view name) const {
  const MetricValue* const value = find(name);
  if (value == nullptr) {
    std::vector<std::string> names;
    names.reserve(metrics.size());
    for (const Metric& metric : metrics) names.push_back(metric.name);
    fail("the record of step {} holds no '{}'{}", step, name, did_you_mean(name, names));
  }
  if (const double* const real = std::get_if<double>(value)) return *real;
  if (const std::int64_t* const integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  fail("'{}' in the record of step {} is not a number", name, step);
}

MetricsLog::MetricsLog(Folder folder, std::unique_ptr<AppendFile> file, std::int64_t last_step)
    : folder_(std::move(folder)), file_(std::move(file)), last_step_(last_step) {}
MetricsLog::MetricsLog(MetricsLog&&) noexcept = default;
MetricsLog& MetricsLog::operator=(MetricsLog&&) noexcept = default;
MetricsLog::~MetricsLog() = default;

MetricsLog MetricsLog::create(const fs::path& path, FlushPolicy policy) {
  const Folder folder(path.parent_path());
  return {folder, std::make_unique<AppendFile>(folder, path.filename().string(), AppendFile::Mode::create, policy), -1};
}

MetricsLog MetricsLog::resume(const fs::path& path, std::int64_t step, FlushPolicy policy) {
  return resume(Folder(path.parent_path()), path.filename().string(), step, policy);
}

MetricsLog MetricsLog::resume(const Folder& folder, const std::string& name, std::int64_t step, FlushPolicy policy,
                              std::span<const std::int64_t> expected) {
  const bool missing = folder.kind(name) == PathKind::nothing;
  const std::string text = missing ? "" : folder.read(name);
  const Kept kept = records_up_to(step, text, folder / name);
  require_steps(expected, kept, step, folder / name);
  require_sealed(folder, name, text);
  const std::string_view begin = std::string_view(text).substr(0, kept.bytes);
  // Before the log is cut: it must never be shorter than its seal says.
  if (folder.has_file(seal_name(name))) write_seal(folder, name, seal_of(begin));
  return {folder, std::make_unique<AppendFile>(folder, name, AppendFile::Mode::extend, policy, begin), kept.last_step};
}

void MetricsLog::append(std::int64_t step, std::span<const Metric> metrics) {
  if (step < 0 || step < last_step_)
    fail("'{}': a record of step {} cannot follow step {}", file_->path().string(), step, last_step_);
  const std::string line = print_metrics_line(step, metrics);
  last_step_ = step;
  file_->append(line);
}

void MetricsLog::flush() { file_->flush(); }
void MetricsLog::sync() { file_->sync(); }

void MetricsLog::seal() {
  sync();
  write_seal(folder_, file_->path().filename().string(), seal_text(file_->size(), file_->digest()));
}

void verify_metrics(const Folder& folder, const std::string& name) {
  require_sealed(folder, name, folder.kind(name) == PathKind::nothing ? "" : folder.read(name));
}

std::vector<MetricRecord> read_metrics(const fs::path& path) {
  const std::string text = read_text(path, kAnySize);
  std::vector<MetricRecord> records;
  for_each_line(text, [&](std::string_view line, std::size_t number, std::size_t) {
    try {
      records.push_back(parse_metrics_line(line));
    } catch (const Error& error) {
      fail("'{}', line {}: {}", path.string(), number, error.what());
    }
  });
  return records;
}

}  // namespace norma
