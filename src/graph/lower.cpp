#include "graph/lower.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/index.h"
#include "norma/core/error.h"

namespace norma {
namespace {

class Lowering {
 public:
  Lowering(Graph& graph, const Backend& backend)
      : graph_(graph), backend_(backend), stands_for_(graph.values().size()) {
    std::iota(stands_for_.begin(), stands_for_.end(), 0);
  }

  void run() {
    const auto complete = [this](const Node& node) { return runs(node); };
    if (std::all_of(graph_.nodes().begin(), graph_.nodes().end(), complete)) return;
    const std::vector<Node> nodes = graph_.nodes();  // a copy: references append
    for (const Node& node : nodes) place(node);
    graph_.replace_nodes(std::move(placed_));
    graph_.redirect_outputs(stands_for_);
  }

 private:
  bool runs(const Node& node) {
    const std::span<const Type> in = graph_.input_types(node, in_), out = graph_.output_types(node, out_);
    return (node.op->views() && node.op->view_offset(in) >= 0) || backend_.has(*node.op, in, out);
  }

  // Appends the node, or what stands for it; a reference may itself use ops that have no kernel.
  void place(Node node) {
    for (int& id : node.inputs) id = stands_for_[at(id)];
    if (runs(node)) {
      placed_.push_back(std::move(node));
      return;
    }
    if (!node.op->has_reference() || !node.op->updates().empty()) refuse(node);
    const std::size_t first = graph_.nodes().size();
    const Wires results = trace_reference(node);
    for (std::size_t id = stands_for_.size(); id < graph_.values().size(); ++id) {
      stands_for_.push_back(static_cast<int>(id));
    }
    for (Node& part : graph_.take_nodes(first)) {
      part.segment = node.segment;
      part.backward = node.backward;
      place(std::move(part));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      stands_for_[at(node.outputs[i])] = stands_for_[at(results[i].id())];
    }
  }

  Wires trace_reference(const Node& node) {
    Wires in;
    for (const int id : node.inputs) in.emplace_back(&graph_, id);
    const auto scope = graph_.scope_at(node.scope);
    Wires results = node.op->reference(in);
    NORMA_ASSERT(results.size() == node.outputs.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      NORMA_ASSERT(results[i] && results[i].type() == graph_.value(node.outputs[i]).type);
    }
    return results;
  }

  [[noreturn]] void refuse(const Node& node) const {
    std::string inputs;
    for (const int id : node.inputs) {
      inputs += (inputs.empty() ? "" : ", ") + graph_.value(id).name + " " + graph_.value(id).type.str();
    }
    fail("{}{}({}): {} has no kernel for it, and it is no composition of other ops",
         node.scope.empty() ? "" : "in " + node.scope.str() + ": ", node.op->name(), inputs, backend_.name());
  }

  Graph& graph_;
  const Backend& backend_;
  std::vector<int> stands_for_;  // by value: what is read in its place
  std::vector<Node> placed_;
  std::vector<Type> in_, out_;  // of the node at hand
};

}  // namespace

void lower(Graph& graph, const Backend& backend) { Lowering(graph, backend).run(); }

}  // namespace norma
