#include "norma/core/error.h"

namespace norma {

void assertion_failed(const char* condition, const char* file, int line) {
  throw InternalError(fmt::format("internal error: {} does not hold at {}:{}", condition, file, line));
}

}  // namespace norma
