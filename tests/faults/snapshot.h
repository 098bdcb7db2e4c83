// What a command leaves behind, without what may differ from run to run (times, and files made only for viewing).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace norma::faults {

using Snapshot = std::map<std::string, std::string>;  // contents by path below the folder

Snapshot snapshot_of(const std::filesystem::path& folder);

struct Difference {
  std::vector<std::string> lost;      // what is missing or differs: "path: what"
  std::vector<std::string> leftover;  // files that the reference does not have
};
Difference compare(const Snapshot& reference, const Snapshot& found);

}  // namespace norma::faults
