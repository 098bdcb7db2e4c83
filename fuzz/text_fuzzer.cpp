// Text of anybody's file: what passes the check of TOML is parsed or refused by its parser, JSON that is not nested
// without end is parsed and printed, and what is printed holds nothing that a terminal would obey.
#include <toml++/toml.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/json.h"
#include "norma/core/error.h"
#include "norma/core/printable.h"
#include "norma/core/toml_text.h"

namespace {

void read_toml(std::string_view text) {
  try {
    norma::check_toml_text(text, "fuzz");
    static_cast<void>(toml::parse(text));
  } catch (const norma::Error&) {
  } catch (const toml::parse_error&) {
  }
}

void read_json(std::string_view text) {
  const nlohmann::json json = norma::parse_json(text);
  if (json.is_discarded()) return;
  const nlohmann::json copy = json;
  const std::string printed = copy.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (norma::parse_json(norma::printable_json(printed)) != norma::parse_json(printed)) std::abort();
}

void print(std::string_view text) {
  const std::string printed = norma::printable(text);
  for (const char c : printed) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) std::abort();
  }
  if (norma::printable(printed) != printed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_toml(text);
  read_json(text);
  print(text);
  return 0;
}
