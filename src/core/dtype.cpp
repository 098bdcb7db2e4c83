#include "norma/core/dtype.h"

#include <array>
#include <limits>
#include <string>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
  bool floating;
  double epsilon;
};

constexpr std::array kTable = {
    Row{DType::f32, "f32", 4, true, std::numeric_limits<float>::epsilon()},
    Row{DType::f64, "f64", 8, true, std::numeric_limits<double>::epsilon()},
    Row{DType::bf16, "bf16", 2, true, 0x1p-7},
    Row{DType::i32, "i32", 4, false, 0.0},
};

const Row& row_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  NORMA_ASSERT(index < kTable.size() && kTable[index].dtype == dtype);
  return kTable[index];
}

}  // namespace

std::size_t size_of(DType dtype) { return row_of(dtype).size; }
std::string_view name_of(DType dtype) { return row_of(dtype).name; }
bool is_floating(DType dtype) { return row_of(dtype).floating; }
bool is_known(DType dtype) { return static_cast<std::size_t>(dtype) < kTable.size(); }
double epsilon_of(DType dtype) { return row_of(dtype).epsilon; }

DType parse_dtype(std::string_view name) {
  std::array<std::string, kTable.size()> names;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return kTable[i].dtype;
    names[i] = kTable[i].name;
  }
  fail("unknown dtype '{}'{}; expected f32, f64, bf16 or i32", name, did_you_mean(name, names));
}

}  // namespace norma
