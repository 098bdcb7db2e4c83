// What each backend can run: op by op, by dtype. The table is a golden file, so that a hole is seen when it opens.
#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <set>
#include <typeindex>

#include "check.h"
#include "norma/norms/norm.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/attention_probe.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/dropout.h"
#include "norma/ops/embedding.h"
#include "norma/ops/gradient_norm.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"
#include "norma/ops/one_hot.h"
#include "norma/ops/optimiser.h"
#include "norma/ops/rope.h"
#include "norma/ops/scaled_add.h"
#include "norma/ops/softmax.h"
#include "norma/ops/statistics.h"
#include "norma/ops/stop_gradient.h"
#include "norma/ops/views.h"
#include "schemes/golden.h"

namespace norma {
namespace {

constexpr std::array kDTypes = {DType::f32, DType::f64, DType::bf16};

// Every op in some application, with its backward pass where it has one.
using Example = std::function<Wire(Graph&, DType)>;

Wire matrix(Graph& g, DType dtype, const char* name = "x") { return g.parameter(name, {{4, 6}, dtype}); }
Wire square_matrix(Graph& g, DType dtype) { return g.parameter("w", {{6, 6}, dtype}); }
Wire one(Graph& g, DType dtype, const char* name) { return g.input(name, {{1}, dtype}); }
Wire classes(Graph& g) { return g.input("classes", {{4}, DType::i32}); }

std::vector<Example> examples() {
  std::vector<Example> all = {
      [](Graph& g, DType t) { return reshape(matrix(g, t), {24}); },
      [](Graph& g, DType t) { return stop_gradient(matrix(g, t)); },
      [](Graph& g, DType t) { return slice(matrix(g, t), 1, 1, 3); },
      [](Graph& g, DType t) { return pad(matrix(g, t), 1, 1, 9); },
      [](Graph& g, DType t) {
        return concat_last(Wires{matrix(g, t), matrix(g, t, "y")});
      },
      [](Graph& g, DType t) { return swap_axes(matrix(g, t), 0, 1); },
      [](Graph& g, DType t) { return cast(matrix(g, t), t == DType::f32 ? DType::f64 : DType::f32); },
      [](Graph& g, DType t) { return exp(matrix(g, t)); },
      [](Graph& g, DType t) { return matrix(g, t) + matrix(g, t, "y"); },
      [](Graph& g, DType t) {
        return matrix(g, t) * g.parameter("y", {{6}, t});
      },
      [](Graph& g, DType t) { return mean_last(matrix(g, t)); },
      [](Graph& g, DType t) {
        return broadcast_to(g.parameter("x", {{6}, t}), {4, 6});
      },
      [](Graph& g, DType t) { return matmul_rows(matrix(g, t), square_matrix(g, t)); },
      [](Graph& g, DType t) { return linear(matrix(g, t), square_matrix(g, t), {}, Activation::gelu); },
      [](Graph& g, DType t) { return activate(matrix(g, t), Activation::silu); },
      [](Graph& g, DType t) { return swiglu(matrix(g, t)); },
      [](Graph& g, DType t) { return scaled_add(matrix(g, t), one(g, t, "a"), matrix(g, t, "y")); },
      [](Graph& g, DType t) { return softmax(matrix(g, t)); },
      [](Graph& g, DType t) {
        return dropout(matrix(g, t), one(g, t, "p"), g.input("key", {{4}, DType::i32}), "here");
      },
      [](Graph& g, DType t) {
        return embedding(matrix(g, t), g.input("ids", {{5}, DType::i32}));
      },
      [](Graph& g, DType t) {
        return rope(g.parameter("x", {{2, 3, 1, 4}, t}), {});
      },
      [](Graph& g, DType t) { return one_hot(classes(g), 6, -100, t); },
      [](Graph& g, DType t) { return cross_entropy(matrix(g, t), classes(g)); },
      [](Graph& g, DType t) { return linear_cross_entropy(matrix(g, t), square_matrix(g, t), classes(g)); },
      [](Graph& g, DType t) {
        const Wire x = attention_packed(g.parameter("x", {{2, 3, 12}, t}), {.heads = 2});
        const Node node = g.nodes().back();
        attention_probe(dynamic_cast<const Attention&>(*node.op), Wires{{&g, node.inputs[0]}});
        return x;
      },
      [](Graph& g, DType t) { return statistics(matrix(g, t)); },
      [](Graph& g, DType t) { return accumulate_gradient(matrix(g, t), one(g, t, "first"), "p"); },
      [](Graph& g, DType t) { return gradient_norm(Wires{matrix(g, t)}, one(g, t, "clip")).scale; },
      [](Graph& g, DType t) {
        return optimise(OptimiserKind::adam, Wires{matrix(g, t)}, Wires{matrix(g, t, "y")},
                        g.input("control", {{OptimiserControl::size}, t}), one(g, t, "scale"), {{}});
      }};
  for (const NormInfo& info : norms()) {
    all.push_back([&info](Graph& g, DType t) {
      const Wire x = g.parameter("x", {{2, 3, 8}, t});
      return apply_norm(info, x, declare_norm(g, info, 8, t), {.groups = 2});
    });
  }
  return all;
}

std::string class_of(const Op& op) {
  const std::type_info& type = typeid(op);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  const std::string full = name.get();
  return full.substr(full.rfind(':') + 1);
}

using Row = std::map<DType, std::string>;

// Ops of a graph, as far as it could be built in this dtype.
void collect(const Backend& backend, const Example& example, DType dtype, std::map<std::string, Row>& rows,
             std::set<std::type_index>& seen) {
  Graph graph;
  try {
    const Wire wire = example(graph, dtype);
    const Wire loss = sum_all(square(wire));
    pull_back(Wires{loss}, Wires{graph.fill(loss.type(), 1)}, graph.parameters());
  } catch (const Error&) {
    // The op is not defined for this dtype, or has no derivative.
  }
  for (const Node& node : graph.nodes()) {
    const Op& op = *node.op;
    const std::vector<Type> in = graph.input_types(node), out = graph.output_types(node);
    const bool view = op.view_offset(in) >= 0;
    const std::string_view how = backend.has(op, in, out) ? "kernel"
                                 : view                   ? "view"
                                 : op.has_reference()     ? "reference"
                                                          : "HOLE";
    for (const DType used : kDTypes) {
      const auto is_used = [&](const Type& type) { return type.dtype == used; };
      if (std::none_of(in.begin(), in.end(), is_used) && std::none_of(out.begin(), out.end(), is_used)) continue;
      std::string& cell = rows[class_of(op)][used];
      if (cell.empty() || cell == "view") cell = how;
    }
    seen.insert(typeid(op));
  }
}

std::string table(const Backend& backend, std::set<std::type_index>& seen) {
  std::map<std::string, Row> rows;
  for (const Example& example : examples()) {
    for (const DType dtype : kDTypes) collect(backend, example, dtype, rows, seen);
  }
  std::string text = fmt::format("{:<28}{:<10}{:<10}{}", backend.name(), "f32", "f64", "bf16");
  for (const auto& [name, row] : rows) {
    std::string line = fmt::format("{:<28}", name);
    for (const DType dtype : kDTypes) {
      line += fmt::format("{:<10}", row.contains(dtype) ? row.at(dtype) : "-");
    }
    text += "\n" + line.substr(0, line.find_last_not_of(' ') + 1);
  }
  return text + "\n";
}

// kernel: runs as it is; view: nothing runs; reference: runs as a composition; HOLE: cannot run; -: not defined.
TEST(Support, IsWhatTheTableSays) {
  std::set<std::type_index> seen;
  const std::string text = table(cpu_backend(), seen);
  EXPECT_EQ(text.find("HOLE"), std::string::npos);
  test::expect_golden("support.txt", text);
  for (const std::type_index op : cpu_backend().ops()) {
    EXPECT_TRUE(seen.contains(op)) << op.name() << " has a kernel but no example here";
  }
}

}  // namespace
}  // namespace norma
