#include "snapshot.h"

#include <sqlite3.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "process.h"

namespace norma::faults {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Times, speeds, who trained beside; checksums of files that hold such things; and the words of a scheme's file that
// say nothing to the program.
const std::set<std::string> kTimes = {
    "title", "source",       "tokens_per_second", "seconds",        "gflops",      "created",      "command",
    "time",  "command_line", "environment",       "cohort_members", "modified_ns", "memory_bytes", "checksum"};

void drop_times(Json& value) {
  if (value.is_object())
    for (const std::string& key : kTimes) value.erase(key);
  if (value.is_structured())
    for (Json& part : value) drop_times(part);
}

std::string json_without_times(const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return "not JSON: " + text;
  drop_times(value);
  return value.dump(1);
}

// Lines may hold a bare NaN, so they are taken as text.
std::string metrics_without_times(std::string text) {
  for (const std::string& key : kTimes) {
    const std::string quoted = ",\"" + key + "\":";
    for (std::size_t at = text.find(quoted); at != std::string::npos; at = text.find(quoted, at)) {
      const std::size_t end = text.find_first_of(",}\n", at + quoted.size());
      text.erase(at, end == std::string::npos ? end : end - at);
    }
  }
  return text;
}

// What a finished run or study says of its files, without their checksums.
std::string end_without_checksums(const std::string& text) {
  Json study = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (study.is_object()) {
    for (const char* key : {"results", "data"}) study.erase(key);
    return study.dump(1);
  }
  std::string names;
  std::istringstream words(text);
  for (std::string word; words >> word;) names += word.starts_with("xxh64:") ? "" : word + "\n";
  return names;
}

// Every row of the index; the path and the speed may differ.
std::string rows_of(const fs::path& index) {
  sqlite3* database = nullptr;
  std::string rows;
  if (sqlite3_open_v2(index.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
    const auto add = [](void* all, int columns, char** values, char** names) {
      for (int i = 0; i < columns; ++i) {
        const std::string name = names[i];
        if (name == "path" || name == "tokens_per_second") continue;
        *static_cast<std::string*>(all) += name + "=" + (values[i] == nullptr ? "null" : values[i]) + "\n";
      }
      return 0;
    };
    char* message = nullptr;
    if (sqlite3_exec(database, "select * from runs order by id", add, &rows, &message) != SQLITE_OK)
      rows = std::string("unreadable: ") + (message == nullptr ? "" : message);
    sqlite3_free(message);
  } else {
    rows = "unreadable";
  }
  sqlite3_close(database);
  return rows;
}

std::string comparable(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name == "index.sqlite") return rows_of(file);
  if (name == "DONE") return end_without_checksums(text_of(file));
  if (name == "metrics.sum") return "a checksum";
  if (name == "metrics.jsonl") return metrics_without_times(text_of(file));
  if (name == "environment.json") return Json::accept(text_of(file)) ? "JSON" : "not JSON";
  if (name == "report.html") return text_of(file).find("</html>") != std::string::npos ? "whole" : "cut short";
  if (name.ends_with(".json")) return json_without_times(text_of(file));
  return text_of(file);
}

// The lock holds a process id; event files are for viewing, one for each start; the data are not ours.
bool is_left_out(const std::string& name) {
  return name == ".lock" || name == "data.txt" || name.starts_with("events.out.tfevents");
}

std::string first_difference(const std::string& a, const std::string& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const std::size_t from = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at - 40));
  std::string text = "'" + a.substr(from, 80) + "' became '" + b.substr(std::min(from, b.size()), 80) + "'";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '.');
  return text;
}

}  // namespace

Snapshot snapshot_of(const fs::path& folder) {
  Snapshot snapshot;
  if (!fs::exists(folder)) return snapshot;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (is_left_out(entry.path().filename().string())) continue;
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_symlink())
      snapshot[name] = "a link";
    else if (entry.is_directory())
      snapshot[name] = "a folder";
    else
      snapshot[name] = comparable(entry.path());
  }
  return snapshot;
}

Difference compare(const Snapshot& reference, const Snapshot& found) {
  Difference difference;
  for (const auto& [name, contents] : reference) {
    const auto other = found.find(name);
    if (other == found.end())
      difference.lost.push_back(name + " is missing");
    else if (other->second != contents)
      difference.lost.push_back(name + ": " + first_difference(contents, other->second));
  }
  for (const auto& [name, contents] : found)
    if (!reference.contains(name)) difference.leftover.push_back(name);
  return difference;
}

}  // namespace norma::faults
