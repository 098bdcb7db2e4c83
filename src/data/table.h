// Labelled sentences from a file: TSV with or without a header (GLUE), or "label text" lines (TREC, SST).
#pragma once

#include <string_view>
#include <vector>

#include "norma/core/mapped_file.h"
#include "norma/data/config.h"

namespace norma {

struct LabelledText {
  std::string_view text, second, label;  // second is empty where there is one text
};

// Throws Error when columns cannot be found, or a line lacks one. The views look into `file`.
std::vector<LabelledText> read_labelled(const MappedFile& file, const DataConfig& config);

}  // namespace norma
