// Tables in files: tab-separated, comma-separated (RFC 4180), one JSON object a line. All become rows of cells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_file.h"
#include "norma/data/config.h"

namespace norma {

enum class Layout { unknown, tsv, csv, jsonl, label_first };

// By the end of a file's name, in front of ".gz".
Layout layout_of_name(const std::string& path);
// data.layout, or what name and beginning of the file say. Throws Error for an unknown word.
Layout layout_of(const DataConfig& config, const std::string& path, std::string_view text);

struct TableRow {
  std::int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> cells;
};

struct TableRows {
  std::vector<TableRow> rows;
  bool named = false;  // the first row holds the names of the columns for sure: keys of JSON
};

// Empty lines are no rows. Throws Error naming `path` and line.
TableRows read_rows(std::string_view text, Layout layout, const std::string& path);

// The column of texts, one a line, for a language model.
std::string texts_of_table(const TextFile& file, Layout layout, const DataConfig& config);

// The first column whose name is one of these, in this order; letters of any case. -1: none.
std::int64_t find_column(const std::vector<std::string>& cells, std::initializer_list<std::string_view> names);

}  // namespace norma
