// The table of functions. A new function is a new row.
#include "norma/schemes/functions.h"

#include <algorithm>
#include <cmath>

#include "norma/norms/row.h"
#include "norma/ops/activation.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/matmul.h"
#include "norma/ops/modulate.h"
#include "norma/ops/reduce.h"
#include "norma/ops/softmax.h"
#include "norma/ops/stop_gradient.h"
#include "norma/ops/views.h"
#include "norma/schemes/trace.h"
#include "schemes/wire_functions.h"

namespace norma {
namespace {

using Numbers = std::span<const double>;
using Traces = std::span<const Traced>;

Wire at(Traces a, std::size_t i) { return std::get<Wire>(a[i]); }

// Why a column is empty.
constexpr std::string_view kOnlyNumbers = "it is a function of numbers";
constexpr std::string_view kOnlyWires = "it is a function of wires";
constexpr std::string_view kBends = "it does not keep a sum of skip and branch";
constexpr std::string_view kOfCondition = "it multiplies by what a condition makes";
constexpr std::string_view kWholeBatch = "it is a number of the whole batch";

using Rule = MomentRule;
constexpr Drawing kDrawnAsBox = {};

constexpr Function kFunctions[] = {
    // name, arguments; numbers; wires; moments; drawing; share
    {"sqrt", "w", [](Numbers a) { return std::sqrt(a[0]); }, [](Traces a) { return sqrt(at(a, 0)); }, Rule::elementwise,
     kDrawnAsBox, kBends},
    {"exp", "w", [](Numbers a) { return std::exp(a[0]); }, [](Traces a) { return exp(at(a, 0)); }, Rule::elementwise,
     kDrawnAsBox, kBends},
    {"ln", "w", [](Numbers a) { return std::log(a[0]); }, [](Traces a) { return log(at(a, 0)); }, Rule::elementwise,
     kDrawnAsBox, kBends},
    {"abs", "w", [](Numbers a) { return std::abs(a[0]); },
     [](Traces a) { return at(a, 0) * (step(at(a, 0)) * 2.0 - 1.0); }, Rule::elementwise, kDrawnAsBox, kBends},
    {"tanh", "w", [](Numbers a) { return std::tanh(a[0]); }, [](Traces a) { return tanh(at(a, 0)); }, Rule::squash,
     kDrawnAsBox, kBends},
    {"sigmoid", "w", [](Numbers a) { return 1 / (1 + std::exp(-a[0])); }, [](Traces a) { return sigmoid(at(a, 0)); },
     Rule::elementwise, kDrawnAsBox, kBends},
    {"silu", "w", [](Numbers a) { return a[0] / (1 + std::exp(-a[0])); },
     [](Traces a) { return activate(at(a, 0), Activation::silu); }, Rule::elementwise, kDrawnAsBox, kBends},
    {"relu", "w", [](Numbers a) { return std::max(a[0], 0.0); },
     [](Traces a) { return activate(at(a, 0), Activation::relu); }, Rule::rectify, kDrawnAsBox, kBends},
    {"sg", "w", [](Numbers a) { return a[0]; }, [](Traces a) { return stop_gradient(at(a, 0)); }, Rule::stop,
     Drawing{Drawing::Kind::pill, "stop gradient"}, ShareRule::same},
    {"floor", "n", [](Numbers a) { return std::floor(a[0]); }, kOnlyNumbers, kOnlyNumbers, kOnlyNumbers, kOnlyNumbers},
    {"ceil", "n", [](Numbers a) { return std::ceil(a[0]); }, kOnlyNumbers, kOnlyNumbers, kOnlyNumbers, kOnlyNumbers},
    {"mod", "nn", [](Numbers a) { return a[0] - a[1] * std::floor(a[0] / a[1]); }, kOnlyNumbers, kOnlyNumbers,
     kOnlyNumbers, kOnlyNumbers},
    {"min", "nn", [](Numbers a) { return std::min(a[0], a[1]); }, kOnlyNumbers, kOnlyNumbers, kOnlyNumbers,
     kOnlyNumbers},
    {"max", "nn", [](Numbers a) { return std::max(a[0], a[1]); }, kOnlyNumbers, kOnlyNumbers, kOnlyNumbers,
     kOnlyNumbers},
    {"clamp", "nnn", [](Numbers a) { return std::min(std::max(a[0], a[1]), a[2]); }, kOnlyNumbers, kOnlyNumbers,
     kOnlyNumbers, kOnlyNumbers},
    {"unit", "w", kOnlyWires, [](Traces a) { return scale_norm(at(a, 0), {}, kShortestUnit); }, Rule::shorten,
     kDrawnAsBox, kBends},
    {"rms", "w", kOnlyWires, [](Traces a) { return rms_norm(at(a, 0), {}); }, Rule::normalise, kDrawnAsBox, kBends},
    {"softmax", "w", kOnlyWires, [](Traces a) { return softmax(at(a, 0)); }, Rule::softmax, kDrawnAsBox, kBends},
    {"modulate", "www", kOnlyWires, [](Traces a) { return modulate(at(a, 0), at(a, 1), at(a, 2)); }, kOfCondition,
     kDrawnAsBox, kBends},
    {"mean", "w", kOnlyWires, [](Traces a) { return mean_all(at(a, 0)); }, kWholeBatch, kDrawnAsBox, kBends},
    {"var", "w", kOnlyWires, variance_of_all, Rule::variance, kDrawnAsBox, kBends},
    {"copies", "wn", kOnlyWires, copies_of_one, Rule::repeat, kDrawnAsBox, kBends},
    {"append", "ww", kOnlyWires, append_copy, Rule::append, kDrawnAsBox, kBends},
    {"sum", "w", kOnlyWires, sum_copies, Rule::total, kDrawnAsBox, kBends},
    {"weigh", "ww", kOnlyWires, weigh_copies, Rule::weigh, kDrawnAsBox, kBends},
    {"mix", "ww", kOnlyWires, mix_copies, Rule::mix, kDrawnAsBox, kBends},
    {"spread", "ww", kOnlyWires, spread_copies, Rule::spread, kDrawnAsBox, kBends},
    {"dot", "ww", kOnlyWires, dot_last, Rule::read, kDrawnAsBox, kBends},
    {"matmul", "ww", kOnlyWires, [](Traces a) { return matmul_rows(at(a, 0), at(a, 1)); }, Rule::read, kDrawnAsBox,
     kBends},
    {"transpose", "w", kOnlyWires, [](Traces a) { return swap_axes(at(a, 0), -2, -1); }, Rule::transpose, kDrawnAsBox,
     kBends},
    {"flat", "w", kOnlyWires, flat_copies, Rule::flatten, kDrawnAsBox, kBends},
    {"matrix", "w", kOnlyWires, as_matrix, Rule::square, kDrawnAsBox, kBends},
    {"sinkhorn", "wn", kOnlyWires, sinkhorn_matrix, Rule::sinkhorn, kDrawnAsBox, kBends},
};

template <typename Wanted>
std::vector<std::string> names_of(Wanted wanted) {
  std::vector<std::string> names;
  for (const Function& function : kFunctions) {
    if (wanted(function)) names.emplace_back(function.name);
  }
  return names;
}

}  // namespace

std::span<const Function> functions() { return kFunctions; }

const Function* find_function(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const Function& function) { return function.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

std::vector<std::string> number_functions() {
  return names_of([](const Function& function) { return static_cast<bool>(function.number); });
}

std::vector<std::string> wire_functions() {
  return names_of([](const Function& function) { return static_cast<bool>(function.wire); });
}

}  // namespace norma
