// A text file, mapped and checked to be text, and its split into training and validation parts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "norma/core/mapped_file.h"
#include "norma/data/config.h"

namespace norma {

// Part of a mapped text, with what keeps it mapped.
struct TextPart {
  std::string_view text;
  std::shared_ptr<const MappedFile> file;
};

struct TextParts {
  TextPart training, validation;
};

// Throws Error for a file that is compressed or holds NUL bytes near its beginning.
std::shared_ptr<const MappedFile> open_text_file(const std::string& path, std::string_view what);

// Two files, or the last data.validation_fraction of one, cut after a line where there is one, otherwise between
// characters.
TextParts open_text_parts(const DataConfig& config);

// Throws Error unless 0 < validation_fraction < 1.
void check_validation_fraction(double fraction);

}  // namespace norma
