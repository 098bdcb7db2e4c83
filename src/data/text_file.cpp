#include "data/text_file.h"

#include <algorithm>
#include <optional>

#include "data/rows.h"
#include "data/text_encoding.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::size_t kCheckedBytes = std::size_t{16} << 20;  // a binary file shows itself early

// Where validation begins: after the first newline at or behind the wanted place, or at the next character.
std::size_t cut_behind(std::string_view text, std::size_t wanted) {
  const std::size_t newline = text.find('\n', wanted);
  if (newline != std::string_view::npos && newline + 1 < text.size()) return newline + 1;
  while (wanted < text.size() && (static_cast<unsigned char>(text[wanted]) & 0xC0) == 0x80) ++wanted;
  return wanted;
}

void check_is_text(std::string_view text, const std::string& path, std::string_view what) {
  if (const std::size_t nul = text.substr(0, kCheckedBytes).find('\0'); nul != std::string_view::npos) {
    fail("'{}' is not text: byte {} is NUL; expected {} (a file of token ids is read with data.task = \"tokens\")",
         path, nul, what);
  }
}

// What `bytes` are as UTF-8; none: what they are already.
std::optional<std::string> converted(std::string_view bytes, const std::string& path, std::string_view what,
                                     std::size_t most) {
  std::string_view name;
  const Packing packing = packing_of(bytes, name);
  if (packing == Packing::other) fail("'{}' is {}; expected {}", path, name, what);
  std::optional<std::string> text;
  if (packing == Packing::gzip) text = unpack_gzip(bytes, path, most);
  const std::string_view unpacked = text ? std::string_view(*text) : bytes;
  if (const Utf16 order = utf16_of(unpacked); order != Utf16::none)
    text = utf8_of_utf16(unpacked.substr(0, unpacked.size() > most ? most / 4 * 4 : unpacked.size()), order, path);
  return text;
}

// The texts of a table, one a line; any other file as it is.
std::shared_ptr<const TextFile> open_language(const std::string& path, std::string_view what,
                                              const DataConfig& config) {
  auto file = open_text_file(path, what);
  const Layout layout = layout_of_name(path);
  if (layout != Layout::csv && layout != Layout::jsonl) return file;
  return std::make_shared<const TextFile>(path, texts_of_table(*file, layout, config));
}

}  // namespace

std::shared_ptr<const TextFile> open_text_file(const std::string& path, std::string_view what) {
  if (path.empty()) fail("no file was given for {}; set data.path", what);
  auto file = std::make_shared<const MappedFile>(path, what);
  auto text = converted(file->text(), path, what, SIZE_MAX);
  check_is_text(text ? std::string_view(*text) : file->text(), path, what);
  if (!text) return std::make_shared<const TextFile>(path, std::move(file));
  if (text->empty()) fail("'{}' is empty once unpacked; expected {}", path, what);
  return std::make_shared<const TextFile>(path, std::move(*text));
}

std::string head_of_text_file(const std::string& path, std::size_t bytes) {
  const MappedFile file(path, "text");
  auto text = converted(file.text(), path, "text", bytes);
  return text ? std::move(*text) : std::string(file.text().substr(0, bytes));
}

void check_validation_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1)) {
    fail("data.validation_fraction is {}; expected a number between 0 and 1, or a data.validation_path", fraction);
  }
}

TextParts open_text_parts(const DataConfig& config) {
  auto file = open_language(config.path, "text", config);
  if (!config.validation_path.empty()) {
    auto validation = open_language(config.validation_path, "validation text", config);
    return {{file->text(), file}, {validation->text(), validation}};
  }
  check_validation_fraction(config.validation_fraction);
  const std::string_view text = file->text();
  const auto wanted = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - config.validation_fraction));
  const std::size_t cut = cut_behind(text, std::min(wanted, text.size()));
  return {{text.substr(0, cut), file}, {text.substr(cut), file}};
}

}  // namespace norma
