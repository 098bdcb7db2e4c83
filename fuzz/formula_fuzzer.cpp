// Any text is either a formula that survives printing and reading back, or an Error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "norma/schemes/formula.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  norma::Formula formula;
  try {
    formula = norma::parse_formula(text);
  } catch (const norma::Error&) {
    return 0;
  }
  const std::string printed = norma::print_formula(formula);
  const norma::Formula again = norma::parse_formula(printed);  // must not throw
  if (!norma::same_formula(formula, again) || norma::print_formula(again) != printed) std::abort();
  return 0;
}
