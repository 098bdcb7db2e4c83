// Labelled sentences from a file: a table with or without a header (TSV, CSV, JSONL), or "label text" lines (TREC,
// SST).
#pragma once

#include <string>
#include <vector>

#include "data/text_file.h"
#include "norma/data/config.h"

namespace norma {

struct LabelledText {
  std::string text, second, label;  // second is empty where there is one text
};

// Throws Error when columns cannot be found, or a line lacks one.
std::vector<LabelledText> read_labelled(const TextFile& file, const DataConfig& config);

}  // namespace norma
