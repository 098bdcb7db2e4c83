#include "norma/train/data_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "norma/core/error.h"
#include "norma/data/tokenizer.h"
#include "norma/store/folder.h"

namespace norma {
namespace {

using nlohmann::ordered_json;

std::string file_difference(const std::string& path, const FileFingerprint& before, const FileFingerprint& now) {
  if (before.bytes != now.bytes) return fmt::format("'{}' had {} bytes, now it has {}", path, before.bytes, now.bytes);
  return fmt::format("'{}' holds something else in the same {} bytes ({} was {})", path, now.bytes, now.hash,
                     before.hash);
}

}  // namespace

std::vector<std::string> data_files(const DataConfig& config) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& path) {
    if (!path.empty() && std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
  };
  if (reads_files(config.task)) {
    for (const std::string* path :
         {&config.path, &config.validation_path, &config.target_path, &config.validation_target_path})
      add(*path);
    if (!config.tokenizer_path.empty() && kind_of(config.tokenizer_path) == PathKind::folder) {
      add((std::filesystem::path(config.tokenizer_path) / "vocab.json").string());
      add((std::filesystem::path(config.tokenizer_path) / "merges.txt").string());
    } else {
      add(config.tokenizer_path);
    }
  }
  return files;
}

void add_fingerprint(DataRecord& record, const std::string& path) {
  if (record.files.contains(path)) return;
  if (kind_of(path) == PathKind::file) record.files[path] = fingerprint_file(path);
  if (kind_of(path) == PathKind::folder) record.files[path] = fingerprint_folder(path);
}

DataRecord record_data(const DataConfig& config, const Source& source) {
  DataRecord record;
  // One that is named but not there is one that the task does not read: the source is open.
  for (const std::string& path : data_files(config)) add_fingerprint(record, path);
  const Tokenizer* tokenizer = source.tokenizer();
  if (tokenizer != nullptr && config.tokenizer_path.empty() && !tokenizer->model().empty())
    record.tokenizer = hash_text(tokenizer->model());
  return record;
}

std::string print_data_record(const DataRecord& record) {
  if (record.empty()) return "";
  ordered_json all = {{"files", ordered_json::object()}};
  for (const auto& [path, print] : record.files)
    all["files"][path] = {{"bytes", print.bytes}, {"modified_ns", print.modified}, {"hash", print.hash}};
  if (!record.tokenizer.empty()) all["tokenizer"] = record.tokenizer;
  all["checksum"] = hash_text(all.dump(2));
  return all.dump(2) + "\n";
}

DataRecord parse_data_record(std::string_view json, std::string_view origin) {
  DataRecord record;
  if (json.empty()) return record;
  ordered_json all = parse_json<ordered_json>(json);
  try {
    // A name with another letter would be a file that nobody reads, and its data would go unchecked.
    const std::string checksum = all.at("checksum").get<std::string>();
    all.erase("checksum");
    if (hash_text(all.dump(2)) != checksum) fail("'{}' is damaged: it is not what its checksum says", origin);
    for (const auto& [path, print] : all.at("files").items())
      record.files[path] = {.bytes = print.at("bytes").get<std::uint64_t>(),
                            .modified = print.at("modified_ns").get<std::int64_t>(),
                            .hash = print.at("hash").get<std::string>()};
    record.tokenizer = all.value("tokenizer", "");
  } catch (const ordered_json::exception&) {
    fail("'{}' is damaged; it says what the data were, remove it only if you know that they are the same", origin);
  }
  return record;
}

std::optional<std::string> data_difference(const DataRecord& before, const DataRecord& now) {
  for (const auto& [path, print] : before.files) {
    const auto found = now.files.find(path);
    if (found != now.files.end() && !print.same_content(found->second))
      return file_difference(path, print, found->second);
  }
  if (!before.tokenizer.empty() && !now.tokenizer.empty() && before.tokenizer != now.tokenizer)
    return fmt::format("the run's tokenizer.model is another ({} was {})", now.tokenizer, before.tokenizer);
  return std::nullopt;
}

std::vector<std::string> doubtful_files(const DataRecord& before, const DataRecord& now) {
  std::vector<std::string> files;
  for (const auto& [path, print] : before.files) {
    const auto found = now.files.find(path);
    if (found == now.files.end() || !print.is_sampled()) continue;
    if (print.same_content(found->second) && print.modified != found->second.modified) files.push_back(path);
  }
  return files;
}

}  // namespace norma
