// Ids of nodes and values are ints; containers count in std::size_t.
#pragma once

#include <cstddef>

namespace norma {

inline std::size_t at(int id) { return static_cast<std::size_t>(id); }

}  // namespace norma
