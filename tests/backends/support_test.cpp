// What each backend can run: op by op, by dtype. The table is a golden file, so that a hole is seen when it opens.
#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <set>
#include <typeindex>

#include "backends/examples.h"
#include "check.h"
#include "schemes/golden.h"

namespace norma {
namespace {

constexpr std::array kDTypes = {DType::f32, DType::f64, DType::bf16};

std::string class_of(const std::type_index type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  const std::string full = name.get();
  return full.substr(full.rfind(':') + 1);
}

using Row = std::map<DType, std::string>;

// Ops of a graph, as far as it could be built in this dtype.
void collect(const Backend& backend, const test::Example& example, DType dtype, std::map<std::string, Row>& rows,
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
      std::string& cell = rows[class_of(typeid(op))][used];
      if (cell.empty() || cell == "view") cell = how;
    }
    seen.insert(typeid(op));
  }
}

std::string table(const Backend& backend, std::set<std::type_index>& seen) {
  std::map<std::string, Row> rows;
  for (const test::Example& example : test::cpu_examples()) {
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
    EXPECT_TRUE(seen.contains(op)) << class_of(op) << " has a kernel but no example in tests/backends/examples.h";
  }
}

}  // namespace
}  // namespace norma
