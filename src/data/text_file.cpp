#include "data/text_file.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kCheckedBytes = std::size_t{16} << 20;  // a binary file shows itself early

bool starts_with_bytes(std::string_view text, std::initializer_list<unsigned char> bytes) {
  return text.size() >= bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), text.begin(),
                    [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); });
}

// Where validation begins: after the first newline at or behind the wanted place, or at the next character.
std::size_t cut_behind(std::string_view text, std::size_t wanted) {
  const std::size_t newline = text.find('\n', wanted);
  if (newline != std::string_view::npos && newline + 1 < text.size()) return newline + 1;
  while (wanted < text.size() && (static_cast<unsigned char>(text[wanted]) & 0xC0) == 0x80) ++wanted;
  return wanted;
}

}  // namespace

std::shared_ptr<const MappedFile> open_text_file(const std::string& path, std::string_view what) {
  if (path.empty()) fail("no file was given for {}; set data.path", what);
  auto file = std::make_shared<const MappedFile>(path, what);
  const std::string_view text = file->text();
  if (starts_with_bytes(text, {0x1F, 0x8B}))
    fail("'{}' is compressed with gzip; unpack it to read it as {}", path, what);
  if (starts_with_bytes(text, {0x28, 0xB5, 0x2F, 0xFD})) {
    fail("'{}' is compressed with zstd; unpack it to read it as {}", path, what);
  }
  if (const std::size_t nul = text.substr(0, kCheckedBytes).find('\0'); nul != std::string_view::npos) {
    fail("'{}' is not text: byte {} is NUL; expected {} (a file of token ids is read with data.task = \"tokens\")",
         path, nul, what);
  }
  return file;
}

void check_validation_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1)) {
    fail("data.validation_fraction is {}; expected a number between 0 and 1, or a data.validation_path", fraction);
  }
}

TextParts open_text_parts(const DataConfig& config) {
  auto file = open_text_file(config.path, "text");
  if (!config.validation_path.empty()) {
    auto validation = open_text_file(config.validation_path, "validation text");
    return {{file->text(), file}, {validation->text(), validation}};
  }
  check_validation_fraction(config.validation_fraction);
  const std::string_view text = file->text();
  const auto wanted = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - config.validation_fraction));
  const std::size_t cut = cut_behind(text, std::min(wanted, text.size()));
  return {{text.substr(0, cut), file}, {text.substr(cut), file}};
}

}  // namespace norma
