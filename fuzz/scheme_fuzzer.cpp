// Any text is either a scheme that can be drawn and predicted, or an Error.
#include <cstdint>
#include <string_view>

#include "norma/schemes/diagram.h"
#include "norma/schemes/scheme.h"
#include "theory/theory.h"

namespace {

norma::BranchTables plain_branches() {
  const norma::BranchResponse response{.output = {1, 0},
                                       .gradient_own = {1, 0},
                                       .gradient_shared = {1, 1},
                                       .change_own = {1, 0},
                                       .change_shared = {1, 1},
                                       .weight_own = 1,
                                       .weight_shared = 1,
                                       .noise_last = {1, 0},
                                       .noise_first = {1, 0},
                                       .noise_scores = {1, 0}};
  const norma::BranchTable table(0, 2, 2, {response, response, response, response});
  return {.plain = {{"attention", table}, {"ffn", table}}, .time = 4};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const norma::BranchTables branches = plain_branches();
  norma::Scheme scheme;
  try {
    scheme = norma::parse_scheme("fuzz", {reinterpret_cast<const char*>(data), size});
  } catch (const norma::Error&) {
    return 0;
  }
  try {
    norma::diagram_svg(scheme, {.layers = 3});
    norma::diagram_text(scheme, {.layers = 3});
  } catch (const norma::Error&) {
  }
  try {
    norma::propagate(scheme, branches, {.layers = 3, .width = 8, .heads = 2});
  } catch (const norma::Error&) {
  }
  return 0;
}
