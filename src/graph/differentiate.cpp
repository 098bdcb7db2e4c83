#include "norma/graph/differentiate.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/graph/sum.h"

namespace norma {
namespace {

// Gradients that reach one value; summed when the walk arrives at it, in a fixed order.
class Accumulator {
 public:
  void add(int value, Wire gradient) {
    if (!gradient) return;
    Parts& parts = parts_[value];
    if (parts.first) {
      parts.more.push_back(gradient);
    } else {
      parts.first = gradient;
    }
  }
  Wire total(int value) {
    const auto found = parts_.find(value);
    if (found == parts_.end()) return {};
    Parts& parts = found->second;
    if (!parts.more.empty()) {
      parts.more.insert(parts.more.begin(), parts.first);
      parts.first = sum(parts.more);
      parts.more.clear();
    }
    return parts.first;
  }

 private:
  struct Parts {
    Wire first = {};
    Wires more = {};  // most values have none
  };
  std::unordered_map<int, Parts> parts_;
};

// Values that depend on any of `wrt` through nodes from `first_node` on: only these carry gradients.
std::vector<bool> depends_on(const Graph& graph, std::span<const Wire> wrt, int first_node) {
  std::vector<bool> active(graph.values().size(), false);
  for (const Wire& wire : wrt) active[static_cast<std::size_t>(wire.id())] = true;
  for (const Node& node : std::span(graph.nodes()).subspan(static_cast<std::size_t>(first_node))) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](int id) { return active[static_cast<std::size_t>(id)]; });
    if (!any) continue;
    for (const int id : node.outputs) {
      if (is_floating(graph.value(id).type.dtype)) active[static_cast<std::size_t>(id)] = true;
    }
  }
  return active;
}

}  // namespace

Wires pull_back(std::span<const Wire> out, std::span<const Wire> dout, std::span<const Wire> wrt, int first_node) {
  NORMA_ASSERT(out.size() == dout.size() && !out.empty());
  Graph& graph = out[0].graph();
  const Graph::Backward backward(graph);
  const std::vector<bool> active = depends_on(graph, wrt, first_node);

  Accumulator gradients;
  int last = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!dout[i] || !active[static_cast<std::size_t>(out[i].id())]) continue;
    if (dout[i].type() != out[i].type()) {
      fail("the gradient by '{}' must be {} but is {}", out[i].name(), out[i].type().str(), dout[i].type().str());
    }
    gradients.add(out[i].id(), dout[i]);
    last = std::max(last, graph.value(out[i].id()).producer);
  }

  Wires node_in, node_out, node_dout;
  for (int index = last; index >= first_node; --index) {
    // Copies of what is needed: vjp appends nodes and may move the list.
    node_in.clear(), node_out.clear(), node_dout.clear();
    for (const int id : graph.node(index).inputs) node_in.emplace_back(&graph, id);
    for (const int id : graph.node(index).outputs) node_out.emplace_back(&graph, id);
    bool reached = false;
    for (const Wire& out_wire : node_out) {
      // A target's own gradient is final here, but it still flows on to what it was computed from.
      const bool carries = active[static_cast<std::size_t>(out_wire.id())];
      const Wire total = carries ? gradients.total(out_wire.id()) : Wire();
      reached = reached || static_cast<bool>(total);
      node_dout.push_back(total);
    }
    if (!reached) continue;
    const auto needed = std::make_unique<bool[]>(node_in.size());  // vector<bool> has no span
    for (std::size_t i = 0; i < node_in.size(); ++i) needed[i] = active[static_cast<std::size_t>(node_in[i].id())];
    const OpPtr op = graph.node(index).op;
    const auto scope = graph.scope_at(graph.node(index).scope);
    const Wires node_din = op->vjp({.in = node_in,
                                    .out = node_out,
                                    .dout = node_dout,
                                    .needed = std::span<const bool>(needed.get(), node_in.size())});
    NORMA_ASSERT(node_din.size() == node_in.size());
    for (std::size_t i = 0; i < node_in.size(); ++i) {
      if (!node_din[i] || !needed[i]) continue;
      NORMA_ASSERT(node_din[i].type() == node_in[i].type());
      gradients.add(node_in[i].id(), node_din[i]);
    }
  }

  Wires result;
  for (const Wire& wire : wrt) result.push_back(gradients.total(wire.id()));
  return result;
}

Wires differentiate(Wire loss, std::span<const Wire> wrt) {
  if (!loss || loss.shape().elements() != 1 || !is_floating(loss.dtype())) {
    fail("the loss must be one floating-point number but '{}' is {}", loss ? loss.name() : "(no wire)",
         loss ? loss.type().str() : "absent");
  }
  for (const Wire& wire : wrt) {
    if (!wire || &wire.graph() != &loss.graph()) fail("differentiate: every wire must belong to the graph of the loss");
  }
  Graph& graph = loss.graph();
  const Wire one = graph.fill(loss.type(), 1.0);
  const Wires out = {loss}, dout = {one};
  Wires gradients = pull_back(out, dout, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!gradients[i])
      fail("the loss '{}' does not depend on {} '{}'", loss.name(), name_of(graph.value(wrt[i].id()).role),
           wrt[i].name());
  }
  return gradients;
}

}  // namespace norma
