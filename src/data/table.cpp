#include "data/table.h"

#include <algorithm>
#include <set>

#include "data/lines.h"
#include "data/rows.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/data/source.h"

namespace norma {
namespace {

struct Columns {
  std::int64_t text = -1, second = -1, label = -1;
  bool header = false;
};

using Cells = std::vector<std::string>;

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Columns named_columns(const Cells& cells) {
  Columns columns;
  columns.label = find_column(cells, {"label", "Quality", "gold_label", "class", "category", "sentiment", "target"});
  columns.text =
      find_column(cells, {"sentence", "sentence1", "#1 String", "text", "question", "premise", "review", "content"});
  columns.second = find_column(cells, {"sentence2", "#2 String", "hypothesis", "question2"});
  columns.header = columns.label >= 0 && columns.text >= 0;
  return columns;
}

// Layouts without a header: CoLA (source, label, mark, sentence), "label title text" (AG News), "label text" and "text
// label".
Columns usual_columns(const Cells& cells) {
  if (cells.size() == 4 && is_integer(cells[1])) return {.text = 3, .label = 1};
  if (cells.size() == 3 && is_integer(cells[0])) return {.text = 1, .second = 2, .label = 0};
  if (cells.size() == 2 && is_integer(cells[0])) return {.text = 1, .label = 0};
  if (cells.size() == 2) return {.text = 0, .label = 1};
  return {};
}

Columns find_columns(const TableRows& table, const DataConfig& config, const std::string& path) {
  const Cells& first = table.rows.front().cells;
  Columns columns;
  if (config.header != "no") columns = named_columns(first);
  const bool names = config.header == "yes" || table.named;
  if (names) columns.header = true;
  if (!columns.header) columns = usual_columns(first);
  if (config.text_column >= 0) {
    columns.text = config.text_column;
    columns.second = -1;  // a second text is asked for by name or number, never guessed beside a number
  }
  if (config.second_text_column >= 0) columns.second = config.second_text_column;
  if (config.label_column >= 0) columns.label = config.label_column;
  if (columns.text < 0 || columns.label < 0) {
    fail("'{}': cannot tell text from label among {} columns{}{}; set data.text_column and data.label_column (from 0)",
         path, first.size(), names ? " named " : "", names ? fmt::format("{}", fmt::join(first, ", ")) : "");
  }
  return columns;
}

std::vector<LabelledText> read_table(const TableRows& table, const DataConfig& config, const std::string& path) {
  const Columns columns = find_columns(table, config, path);
  const auto needed = static_cast<std::size_t>(std::max({columns.text, columns.second, columns.label}));
  std::vector<LabelledText> records;
  for (std::size_t i = columns.header ? 1 : 0; i < table.rows.size(); ++i) {
    const TableRow& row = table.rows[i];
    if (row.cells.size() <= needed) {
      fail("'{}' line {} has {} columns; expected column {} (counted from 0) as well", path, row.line, row.cells.size(),
           needed);
    }
    const auto cell = [&](std::int64_t column) {
      return column < 0 ? std::string() : std::string(trim(row.cells[static_cast<std::size_t>(column)]));
    };
    records.push_back({cell(columns.text), cell(columns.second), cell(columns.label)});
  }
  return records;
}

std::vector<LabelledText> read_label_first(std::string_view text, const std::string& path) {
  std::vector<LabelledText> records;
  std::int64_t number = 0;
  for (const std::string_view one : split_lines(text)) {
    ++number;
    const std::string_view line = trim(one);
    if (line.empty()) continue;
    const std::size_t space = line.find_first_of(" \t");
    if (space == std::string_view::npos) fail("'{}' line {}: expected a label, a space and a text", path, number);
    records.push_back({std::string(trim(line.substr(space))), {}, std::string(line.substr(0, space))});
  }
  return records;
}

std::vector<LabelledText> read_text(std::string_view text, const std::string& path, const DataConfig& config) {
  const Layout layout = layout_of(config, path, text);
  if (layout == Layout::label_first) return read_label_first(text, path);
  const TableRows table = read_rows(text, layout, path);
  if (table.rows.empty()) fail("'{}' has no lines", path);
  return read_table(table, config, path);
}

}  // namespace

std::vector<LabelledText> read_labelled(const TextFile& file, const DataConfig& config) {
  const std::string known[] = {"auto", "yes", "no"};
  if (std::find(std::begin(known), std::end(known), config.header) == std::end(known))
    fail("data.header is '{}'; expected one of {}{}", config.header, fmt::join(known, ", "),
         did_you_mean(config.header, known));
  if (file.text().empty()) fail("'{}' has no lines", file.path());
  return read_text(file.text(), file.path(), config);
}

namespace {

// Lines of prose begin with few different words too: labels in front of a text are numbers, "DESC:manner" or
// "__label__x".
bool looks_like_labels(const std::set<std::string>& labels) {
  return std::ranges::all_of(labels, [](const std::string& label) {
    return is_integer(label) || label.starts_with("__label__") || label.find(':') != std::string::npos;
  });
}

struct Look {
  bool labelled = false, one_label = false;  // one_label: it would be, were there a second one
};

// Whether its first line names a text and a label.
bool names_label(std::string_view text, Layout layout, const DataConfig& config) {
  const TableRows table = read_rows(text, layout, config.path);
  return config.header != "no" && !table.rows.empty() && named_columns(table.rows.front().cells).header;
}

Look look_at_head(const DataConfig& config, std::size_t longest, std::size_t fewest) {
  bool named = false;
  try {
    std::string head = head_of_text_file(config.path, longest);
    if (head.size() >= longest) head.resize(std::min(head.rfind('\n'), head.size()));  // the last line may be cut
    const Layout layout = layout_of(config, config.path, head);
    const bool in_front = layout == Layout::label_first;
    named = !in_front && names_label(head, layout, config);
    const std::vector<LabelledText> records = read_text(head, config.path, config);
    std::set<std::string> labels;
    std::size_t text = 0, label = 0;
    for (const LabelledText& one : records) {
      labels.insert(one.label);
      text += one.text.size();
      label += one.label.size();
    }
    if (in_front && !looks_like_labels(labels)) return {};
    // A column that is called so needs no proof; but one of numbers that hardly repeat is no class.
    if (named && (labels.size() < 2 || records.size() < fewest)) return {.labelled = true};
    // Few labels that come again and again, beside texts that are longer than they are.
    const bool texts = records.size() >= fewest && text > label;
    return {texts && labels.size() >= 2 && 4 * labels.size() <= records.size(), texts && labels.size() == 1};
  } catch (const Error&) {  // no whole table; whoever opens it says what is wrong
    return {.labelled = named};
  }
}

}  // namespace

bool looks_labelled(const DataConfig& config) {
  // A table that is sorted by its labels shows one alone for long.
  constexpr std::size_t kHead = std::size_t{1} << 17, kLongest = std::size_t{1} << 24, kFewest = 8;
  if (config.label_column >= 0 || config.layout == "label-first") return true;
  const auto [labelled, one_label] = look_at_head(config, kHead, kFewest);
  return labelled || (one_label && look_at_head(config, kLongest, kFewest).labelled);
}

}  // namespace norma
