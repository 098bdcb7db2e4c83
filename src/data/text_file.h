// A text file as UTF-8, whatever it is on disk, and its split into training and validation parts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "norma/core/mapped_file.h"
#include "norma/data/config.h"

namespace norma {

// Mapped where it is UTF-8 or bytes already; unpacked and converted in memory where it is gzip or UTF-16.
class TextFile {
 public:
  TextFile(std::string path, std::shared_ptr<const MappedFile> file)
      : path_(std::move(path)), file_(std::move(file)), text_(file_->text()) {}
  TextFile(std::string path, std::string converted)
      : path_(std::move(path)), converted_(std::move(converted)), text_(converted_) {}
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }
  std::string_view text() const { return text_; }

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::string converted_;
  std::string_view text_;
};

// Part of a text, with what keeps it in memory.
struct TextPart {
  std::string_view text;
  std::shared_ptr<const TextFile> file;
};

struct TextParts {
  TextPart training, validation;
};

// Throws Error for a file that is no text, naming what it is.
std::shared_ptr<const TextFile> open_text_file(const std::string& path, std::string_view what);

// About the first `bytes` bytes of the text, to see what it is.
std::string head_of_text_file(const std::string& path, std::size_t bytes);

// Two files, or the last data.validation_fraction of one, cut after a line where there is one, otherwise between
// characters. Of a table (.csv, .jsonl) the texts, one a line.
TextParts open_text_parts(const DataConfig& config);

// Throws Error unless 0 < validation_fraction < 1.
void check_validation_fraction(double fraction);

}  // namespace norma
