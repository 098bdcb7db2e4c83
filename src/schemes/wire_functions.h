// Functions of wires that formulas may call. Streams are [batch, time, d]; a stream of several copies is
// [batch, time, copies, d], weights over its copies are [copies] or [batch, time, copies], and mixers between them are
// [copies, copies] or [batch, time, copies, copies].
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "norma/graph/wire.h"

namespace norma {

using Traced = std::variant<double, Wire>;

struct WireFunction {
  std::string_view name;
  std::string_view arguments;  // one letter each: w a wire, n a number
  Wire (*apply)(std::span<const Traced> arguments);
};

const WireFunction* find_wire_function(std::string_view name);  // null: there is none
std::vector<std::string> wire_functions();                      // their names

}  // namespace norma
