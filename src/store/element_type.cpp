#include "norma/store/element_type.h"

#include <array>
#include <string>
#include <vector>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

struct Described {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Described, 17> kTypes = {{{"BOOL", 1},
                                               {"U8", 1},
                                               {"I8", 1},
                                               {"F8_E5M2", 1},
                                               {"F8_E4M3", 1},
                                               {"F8_E8M0", 1},
                                               {"I16", 2},
                                               {"U16", 2},
                                               {"F16", 2},
                                               {"BF16", 2},
                                               {"I32", 4},
                                               {"U32", 4},
                                               {"F32", 4},
                                               {"I64", 8},
                                               {"U64", 8},
                                               {"F64", 8},
                                               {"C64", 8}}};

const Described& described(ElementType type) {
  const auto index = static_cast<std::size_t>(type);
  NORMA_ASSERT(index < kTypes.size());
  return kTypes[index];
}

}  // namespace

std::string_view name_of(ElementType type) { return described(type).name; }
std::size_t size_of(ElementType type) { return described(type).bytes; }

ElementType parse_element_type(std::string_view name) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
    known.emplace_back(kTypes[i].name);
  }
  fail("unknown element type '{}'{}; known: {}", name, did_you_mean(name, known), fmt::join(known, ", "));
}

ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ElementType::f32;
    case DType::f64: return ElementType::f64;
    case DType::bf16: return ElementType::bf16;
    case DType::i32: return ElementType::i32;
  }
  fail("{} is no element type", static_cast<int>(dtype));
}

std::vector<std::int64_t> dimensions_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

}  // namespace norma
