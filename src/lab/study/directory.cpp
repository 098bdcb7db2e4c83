#include "lab/study/directory.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/directory_kind.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/store/atomic_file.h"
#include "norma/store/file_fingerprint.h"
#include "norma/train/data.h"
#include "norma/train/data_record.h"
#include "norma/version.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kResultsFile = "results.json", *kDoneFile = "DONE";

std::string quoted_list(const std::vector<SchemeChoice>& schemes) {
  std::vector<std::string> quoted;
  for (const SchemeChoice& scheme : schemes)  // a string of TOML as well
    quoted.push_back(json(scheme.asked()).dump(-1, ' ', false, json::error_handler_t::replace));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string print_study(const StudyConfig& config) {
  RunConfig base = settle_task(config.base);
  base.train.threads = 0;  // changes no bit of the result
  return fmt::format(
      "[study]\nschemes = {}\ndepths = [{}]\nlr = [{}]\nextra_rates = {}\nwarmup = [{}]\nseeds = [{}]\nbudget = "
      "\"{}\"\ninspect = {}\n"
      "train = {}\ndepth_use = {}\nasked = [{}, {}]\n\n{}",
      quoted_list(config.schemes), fmt::join(config.depths, ", "), fmt::join(config.rates, ", "), config.extra_rates,
      fmt::join(config.warmups, ", "), fmt::join(config.seeds, ", "), print_budget(config.budget), config.inspect,
      config.train, config.depth_use, config.asked_layers, config.asked_width, print_config(base));
}

// Of all that decides what comes out, but the data.
std::string hash_of_study(const StudyConfig& config) {
  std::string all = NORMA_VERSION "\n" + print_study(config);
  for (const SchemeChoice& scheme : config.schemes) all += scheme->text + "\n";
  return hash_text(all);
}

DataRecord data_now(const StudyConfig& config) {
  DataRecord now;
  for (const std::string& file : data_files(settle_task(config.base).data)) add_fingerprint(now, file);
  return now;
}

Folder open_study(const fs::path& path) {
  require_study_directory(path);
  return Folder::make(path);
}

}  // namespace

std::optional<std::string> finished_study(const StudyRequest& request) {
  const fs::path done = request.directory / kDoneFile, results = request.directory / kResultsFile;
  if (kind_of(done) != PathKind::file || kind_of(results) != PathKind::file) return std::nullopt;
  const json record = parse_json(read_text(done));
  if (!record.is_object() || record.value("study", "") != hash_of_study(request.config)) return std::nullopt;
  const DataRecord before = parse_data_record(record.value("data", ""), done.string());
  if (data_difference(before, data_now(request.config))) return std::nullopt;
  std::string text = read_text(results);
  return record.value("results", "") == hash_text(text) ? std::optional(std::move(text)) : std::nullopt;
}

StudyDirectory::StudyDirectory(const StudyRequest& request)
    : request_(request), folder_(open_study(request.directory)), lock_(folder_) {
  require_study_directory(request.directory);  // another process may have begun something else here meanwhile
  remove_stale_temporaries(folder_);
  write_atomically(folder_, kStudyFile, print_study(request.config));
}

void StudyDirectory::finish(const std::string& results) const {
  write_atomically(folder_, kResultsFile, results);
  const json done = {{"study", hash_of_study(request_.config)},
                     {"results", hash_text(results)},
                     {"data", print_data_record(data_now(request_.config))}};
  write_atomically(folder_, kDoneFile, done.dump(2) + "\n");
}

}  // namespace norma
