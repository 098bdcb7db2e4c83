#include "train/same_run.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "norma/core/error.h"
#include "norma/train/data.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

// Keys that may change from one process to the next: threads change no bit of the result, and a run may move to another
// device, where it goes on to rounding.
bool may_differ(const std::string& key) { return key == "train.threads" || key == "train.device"; }

using KeyValues = std::map<std::string, std::string>;

KeyValues values_of(const RunConfig& config) {
  KeyValues values;
  for (const ConfigKey& key : config_keys(config)) values[key.name] = key.value;
  return values;
}

RunConfig stored_config(const RunView& run, const RunConfig& wanted) {
  SchemeLibrary schemes;
  schemes.put(wanted.model.scheme);  // for runs that have kept none
  return parse_config(run.config(), run.config_path().string(), library_of_run(run.path(), schemes));
}

template <typename... Args>
[[noreturn]] void fail_as_other(fmt::format_string<Args...> message, Args&&... args) {
  throw OtherRunError(fmt::format(message, std::forward<Args>(args)...));
}

void check_same_scheme(const RunView& run, const SchemeChoice& wanted) {
  const std::string kept = run.scheme();
  // Of another name it has not changed, it is another: the keys say so.
  if (kept.empty() || scheme_named_in(run) != wanted.asked()) return;
  std::optional<std::string> difference;
  try {
    difference = scheme_difference(kept, wanted->text);
  } catch (const Error& error) {
    fail("'{}' is damaged ({}); remove it to go on with the scheme '{}' as it is now", run.scheme_path().string(),
         error.what(), wanted.asked());
  }
  if (difference)
    fail_as_other(
        "'{}' holds another run: the scheme '{}' has changed since it began: {}; choose another directory, or go on "
        "with the scheme as it was, in '{}'",
        run.path().string(), wanted.asked(), *difference, run.scheme_path().string());
}

}  // namespace

void check_same_run(const RunView& run, const RunConfig& wanted) {
  check_same_scheme(run, wanted.model.scheme);
  KeyValues values = values_of(stored_config(run, wanted));
  for (const auto& [name, value] : values_of(wanted)) {
    const auto found = values.find(name);
    const std::string old = found == values.end() ? "nothing" : found->second;
    if (found != values.end()) values.erase(found);
    if (old == value || may_differ(name)) continue;
    fail_as_other(
        "'{}' holds another run: its {} is {}, this one's is {}; choose another directory, or repeat the first run",
        run.path().string(), name, old, value);
  }
  if (!values.empty())
    fail_as_other("'{}' holds another run: its {} is {}, this one has none", run.path().string(), values.begin()->first,
                  values.begin()->second);
}

RunConfig resolved_as(const RunView& run, RunConfig wanted) {
  const RunConfig stored = stored_config(run, wanted);
  wanted = settle_task(std::move(wanted));
  if (wanted.model.vocabulary == 0) wanted.model.vocabulary = stored.model.vocabulary;
  if (wanted.model.classes == 0) wanted.model.classes = stored.model.classes;
  return wanted;
}

DataRecord stored_record(const RunView& run) { return parse_data_record(run.data(), run.data_path().string()); }

void require_same_data(const RunView& run, const DataRecord& now) {
  if (const auto difference = data_difference(stored_record(run), now))
    fail(
        "the data of the run in '{}' have changed since it began: {}; put them back to go on with it, or choose "
        "another directory",
        run.path().string(), *difference);
}

}  // namespace norma
