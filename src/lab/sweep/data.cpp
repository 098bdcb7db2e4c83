#include "lab/sweep/data.h"

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/store/atomic_file.h"

namespace norma {
namespace {

constexpr const char* kDataFile = "data.json";

}  // namespace

DataRecord require_same_data(const std::filesystem::path& sweep, const std::vector<DataConfig>& configs) {
  const std::filesystem::path path = sweep / kDataFile;
  DataRecord known, now;
  if (kind_of(path) == PathKind::file) known = parse_data_record(read_text(path), path.string());
  for (const DataConfig& config : configs) {
    for (const std::string& file : data_files(config)) add_fingerprint(now, file);
  }
  if (const auto difference = data_difference(known, now))
    fail(
        "the data of the sweep in '{}' have changed since it began: {}; put them back to go on with it, or choose "
        "another "
        "directory",
        sweep.string(), *difference);
  known.files.insert(now.files.begin(), now.files.end());
  return known;
}

void keep_data_record(const Folder& sweep, const DataRecord& record) {
  const std::string text = print_data_record(record);
  if (text.empty()) return;
  const bool same = sweep.has_file(kDataFile) && sweep.read(kDataFile) == text;
  if (!same) write_atomically(sweep, kDataFile, text);
}

}  // namespace norma
