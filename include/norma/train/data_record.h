// What the files of a run or a sweep held when it began (data.json), so that it does not go on with others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/data/source.h"
#include "norma/store/file_fingerprint.h"

namespace norma {

struct DataRecord {
  std::map<std::string, FileFingerprint> files = {};  // by path as the configuration has it
  std::string tokenizer = {};                         // hash of the SentencePiece model that the run trained itself

  bool empty() const { return files.empty() && tokenizer.empty(); }
};

// The files that a configuration makes norma read, each once; none of a generated task.
std::vector<std::string> data_files(const DataConfig& config);

// Of the file or folder at `path`, where there is one.
void add_fingerprint(DataRecord& record, const std::string& path);

// `source`: as opened for the run. Throws Error for a file that cannot be read.
DataRecord record_data(const DataConfig& config, const Source& source);

std::string print_data_record(const DataRecord& record);  // empty for an empty one
DataRecord parse_data_record(std::string_view json, std::string_view origin);

// The first file that is not what it was, as "'corpus.txt' had 10 bytes, now it has 20"; files of which one of the two
// knows nothing do not count, and neither does a time alone.
std::optional<std::string> data_difference(const DataRecord& before, const DataRecord& now);

// Large files are compared by samples. Those among them that were written to since, though the samples are the same.
std::vector<std::string> doubtful_files(const DataRecord& before, const DataRecord& now);

}  // namespace norma
