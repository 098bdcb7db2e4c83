#pragma once

#include <string>
#include <utility>

#include "norma/core/error.h"

namespace norma::test {

// The message of the Error that `action` throws; "" when it throws none.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace norma::test
