#include "data/table.h"

#include <algorithm>
#include <string>

#include "data/lines.h"
#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

struct Columns {
  std::int64_t text = -1, second = -1, label = -1;
  bool header = false;
};

using Cells = std::vector<std::string_view>;

std::int64_t find_name(const Cells& cells, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::find_if(cells.begin(), cells.end(), [&](std::string_view c) { return trim(c) == name; });
    if (found != cells.end()) return found - cells.begin();
  }
  return -1;
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Columns named_columns(const Cells& cells) {
  Columns columns;
  columns.label = find_name(cells, {"label", "Quality", "gold_label", "class"});
  columns.text = find_name(cells, {"sentence", "sentence1", "#1 String", "text", "question", "premise"});
  columns.second = find_name(cells, {"sentence2", "#2 String", "hypothesis", "question2"});
  columns.header = columns.label >= 0 && columns.text >= 0;
  return columns;
}

// Layouts without a header: CoLA (source, label, mark, sentence), "label text" and "text label".
Columns usual_columns(const Cells& cells) {
  if (cells.size() == 4 && is_integer(cells[1])) return {.text = 3, .label = 1};
  if (cells.size() == 2 && is_integer(cells[0])) return {.text = 1, .label = 0};
  if (cells.size() == 2) return {.text = 0, .label = 1};
  return {};
}

Columns find_columns(const Cells& first, const DataConfig& config, const std::string& path) {
  Columns columns;
  if (config.header != "no") columns = named_columns(first);
  if (config.header == "yes") columns.header = true;
  if (!columns.header) columns = usual_columns(first);
  if (config.text_column >= 0) {
    columns.text = config.text_column;
    columns.second = -1;  // a second text is asked for by name or number, never guessed beside a number
  }
  if (config.second_text_column >= 0) columns.second = config.second_text_column;
  if (config.label_column >= 0) columns.label = config.label_column;
  if (columns.text < 0 || columns.label < 0) {
    fail("'{}': cannot tell text from label among {} columns; set data.text_column and data.label_column (from 0)",
         path, first.size());
  }
  return columns;
}

std::vector<LabelledText> read_table(const std::vector<std::string_view>& lines, const DataConfig& config,
                                     const std::string& path) {
  const Columns columns = find_columns(split_columns(lines.front()), config, path);
  const auto needed = static_cast<std::size_t>(std::max({columns.text, columns.second, columns.label}));
  std::vector<LabelledText> records;
  for (std::size_t i = columns.header ? 1 : 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const Cells cells = split_columns(lines[i]);
    if (cells.size() <= needed) {
      fail("'{}' line {} has {} columns; expected column {} (counted from 0) as well", path, i + 1, cells.size(),
           needed);
    }
    const auto cell = [&](std::int64_t column) {
      return column < 0 ? std::string_view() : trim(cells[static_cast<std::size_t>(column)]);
    };
    records.push_back({cell(columns.text), cell(columns.second), cell(columns.label)});
  }
  return records;
}

std::vector<LabelledText> read_label_first(const std::vector<std::string_view>& lines, const std::string& path) {
  std::vector<LabelledText> records;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty()) continue;
    const std::size_t space = line.find_first_of(" \t");
    if (space == std::string_view::npos) fail("'{}' line {}: expected a label, a space and a text", path, i + 1);
    records.push_back({trim(line.substr(space)), {}, line.substr(0, space)});
  }
  return records;
}

}  // namespace

std::vector<LabelledText> read_labelled(const MappedFile& file, const DataConfig& config) {
  const auto check = [](const char* key, const std::string& given, std::initializer_list<std::string> known) {
    if (std::find(known.begin(), known.end(), given) != known.end()) return;
    fail("data.{} is '{}'; expected one of {}{}", key, given, fmt::join(known, ", "),
         did_you_mean(given, std::span(known.begin(), known.size())));
  };
  check("layout", config.layout, {"auto", "tsv", "label-first"});
  check("header", config.header, {"auto", "yes", "no"});
  const std::vector<std::string_view> lines = split_lines(file.text());
  if (lines.empty()) fail("'{}' has no lines", file.path());
  const bool table =
      config.layout == "tsv" || (config.layout == "auto" && lines.front().find('\t') != std::string_view::npos);
  return table ? read_table(lines, config, file.path()) : read_label_first(lines, file.path());
}

}  // namespace norma
