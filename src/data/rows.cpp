#include "data/rows.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/lines.h"
#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

TableRows read_tsv(std::string_view text) {
  TableRows table;
  std::int64_t line = 0;
  for (const std::string_view one : split_lines(text)) {
    ++line;
    if (trim(one).empty()) continue;
    TableRow row{.line = line, .cells = {}};
    for (const std::string_view cell : split_columns(one)) row.cells.emplace_back(trim(cell));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Whichever stands more often in the first line, outside quotes.
char separator_of(std::string_view text) {
  std::size_t commas = 0, semicolons = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == '\n' && !quoted) break;
    commas += c == ',' && !quoted;
    semicolons += c == ';' && !quoted;
  }
  return semicolons > commas ? ';' : ',';
}

// Reads one file of values between separators; quotes may hold separators, ends of lines and doubled quotes.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& path)
      : text_(text), path_(path), separator_(separator_of(text)) {}

  TableRows read() {
    TableRows table;
    while (at_ < text_.size()) {
      TableRow row{.line = line_, .cells = {}};
      do row.cells.push_back(cell());
      while (at_ < text_.size() && text_[at_] == separator_ && ++at_ > 0);
      end_of_line();
      const bool empty = row.cells.size() == 1 && trim(row.cells[0]).empty();
      if (!empty) table.rows.push_back(std::move(row));
    }
    return table;
  }

 private:
  std::string cell() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_cell();
    const std::size_t end = std::min(text_.find_first_of(separator_ == ',' ? ",\r\n" : ";\r\n", at_), text_.size());
    std::string value(trim(text_.substr(at_, end - at_)));
    at_ = end;
    return value;
  }

  std::string quoted_cell() {
    const std::int64_t begun = line_;
    std::string value;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != '"') {
        value += c;
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        value += text_[++at_];
      } else {
        ++at_;
        return value;
      }
    }
    fail("'{}' line {}: a quotation mark is never closed", path_, begun);
  }

  void end_of_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] != '\n')
      fail("'{}' line {}: expected {} or the end of the line behind a quotation mark", path_, line_,
           separator_ == ',' ? "a comma" : "a semicolon");
    ++at_;
    ++line_;
  }

  std::string_view text_;
  const std::string& path_;
  char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

// Keys of the first object are the columns; what a later one lacks is empty.
TableRows read_jsonl(std::string_view text, const std::string& path) {
  TableRows table{.rows = {}, .named = true};
  std::int64_t line = 0;
  for (const std::string_view one : split_lines(text)) {
    ++line;
    if (trim(one).empty()) continue;
    const auto object = parse_json<nlohmann::ordered_json>(one);
    if (!object.is_object()) fail("'{}' line {} is not a JSON object; expected {{\"text\": \"...\", ...}}", path, line);
    if (table.rows.empty()) {
      TableRow names{.line = line, .cells = {}};
      for (const auto& [key, value] : object.items()) names.cells.push_back(key);
      table.rows.push_back(std::move(names));
    }
    TableRow row{.line = line, .cells = {}};
    for (const std::string& key : table.rows.front().cells)
      row.cells.push_back(object.contains(key) ? text_of(object.at(key)) : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Layout layout_of_name(const std::string& path) {
  std::string name = lower(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (name.ends_with(".csv")) return Layout::csv;
  if (name.ends_with(".tsv")) return Layout::tsv;
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return Layout::jsonl;
  return Layout::unknown;
}

Layout layout_of(const DataConfig& config, const std::string& path, std::string_view text) {
  const std::pair<std::string, Layout> words[] = {
      {"tsv", Layout::tsv}, {"csv", Layout::csv}, {"jsonl", Layout::jsonl}, {"label-first", Layout::label_first}};
  std::vector<std::string> known = {"auto"};
  for (const auto& [word, layout] : words) {
    if (config.layout == word) return layout;
    known.push_back(word);
  }
  if (config.layout != "auto")
    fail("data.layout is '{}'; expected one of {}{}", config.layout, fmt::join(known, ", "),
         did_you_mean(config.layout, known));
  if (const Layout named = layout_of_name(path); named != Layout::unknown) return named;
  const std::string_view first = text.substr(0, text.find('\n'));
  if (trim(first).starts_with('{') && trim(first).ends_with('}')) return Layout::jsonl;
  return first.find('\t') != std::string_view::npos ? Layout::tsv : Layout::label_first;
}

TableRows read_rows(std::string_view text, Layout layout, const std::string& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (layout == Layout::csv) return CsvReader(text, path).read();
  return layout == Layout::jsonl ? read_jsonl(text, path) : read_tsv(text);
}

std::int64_t find_column(const std::vector<std::string>& cells, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::find_if(cells.begin(), cells.end(),
                                    [&](const std::string& cell) { return lower(trim(cell)) == lower(name); });
    if (found != cells.end()) return found - cells.begin();
  }
  return -1;
}

std::string texts_of_table(const TextFile& file, Layout layout, const DataConfig& config) {
  const TableRows table = read_rows(file.text(), layout, file.path());
  if (table.rows.empty()) fail("'{}' has no rows", file.path());
  const std::int64_t named =
      find_column(table.rows.front().cells, {"text", "content", "sentence", "document", "story"});
  const std::int64_t column = config.text_column >= 0 ? config.text_column : named;
  const bool header = table.named || config.header == "yes" || (config.header == "auto" && named >= 0);
  if (column < 0)
    fail("'{}' is a table; expected a column \"text\" among {}, or its number (from 0) as data.text_column",
         file.path(), fmt::join(table.rows.front().cells, ", "));
  std::string text;
  for (std::size_t i = header ? 1 : 0; i < table.rows.size(); ++i) {
    const TableRow& row = table.rows[i];
    if (std::ssize(row.cells) <= column)
      fail("'{}' line {} has {} columns; expected column {} (counted from 0) as well", file.path(), row.line,
           row.cells.size(), column);
    text += row.cells[static_cast<std::size_t>(column)] + "\n";
  }
  return text;
}

}  // namespace norma
