#include "train/toml_input.h"

#include <fstream>

#include "norma/core/error.h"
#include "norma/core/toml_text.h"

namespace norma {
namespace {

constexpr std::size_t kLargestToml = std::size_t{1} << 20;

}  // namespace

toml::table parse_toml(std::string_view text, std::string_view origin) {
  if (text.size() > kLargestToml) fail("{}: {} bytes are too many for a configuration", origin, text.size());
  check_toml_text(text, origin);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail("{}, line {}, column {}: {}", origin, error.source().begin.line, error.source().begin.column,
         error.description());
  }
}

std::string read_toml(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) fail("there is no file '{}'", path.string());
  if (std::filesystem::is_directory(path, status)) fail("'{}' is a folder; expected a TOML file", path.string());
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read '{}'", path.string());
  std::string text(kLargestToml + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (code < 0x20 || code == 0x7f) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_key(std::string_view name) {
  constexpr std::string_view kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const bool bare = !name.empty() && name.find_first_not_of(kBare) == std::string_view::npos;
  return bare ? std::string(name) : toml_string(name);
}

}  // namespace norma
