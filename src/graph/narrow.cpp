#include "graph/narrow.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/index.h"
#include "norma/core/error.h"
#include "norma/graph/cast_all.h"

namespace norma {

std::vector<Type> CastAll::infer(std::span<const Type> in) const {
  std::vector<Type> out(in.begin(), in.end());
  for (Type& type : out) type.dtype = dtype_;
  return out;
}

Cost CastAll::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 0, .bytes = traffic(in, out)};
}

namespace {

DType dtype_of(bool narrow) { return narrow ? DType::bf16 : DType::f32; }

class Narrowing {
 public:
  Narrowing(Graph& graph, const Backend& backend)
      : graph_(graph),
        backend_(backend),
        other_(graph.values().size(), -1),
        producer_(graph.values().size(), -1),
        read_narrow_(graph.values().size(), false) {
    find_wants();
    for (const int id : graph.narrow_streams()) read_narrow_[at(id)] = true;
  }

  void run() {
    for (Node& node : graph_.take_nodes()) place(std::move(node));
    widen_outputs();
    if (!parameters_.inputs.empty()) placed_.insert(placed_.begin(), std::move(parameters_));
    graph_.replace_nodes(std::move(placed_));
  }

 private:
  bool is_narrow(int id) const { return graph_.value(id).type.dtype == DType::bf16; }
  bool has_width(int id) const { return is_narrow(id) || graph_.value(id).type.dtype == DType::f32; }

  // By value: whether every reader wants it narrow.
  void find_wants() {
    wanted_.assign(graph_.values().size(), true);
    for (const Node& node : graph_.nodes()) {
      for (std::size_t in = 0; in < node.inputs.size(); ++in) {
        if (!node.op->wants_narrow(static_cast<int>(in))) wanted_[at(node.inputs[in])] = false;
      }
    }
    for (const Output& output : graph_.outputs()) wanted_[at(output.value)] = false;
  }

  void place(Node node) {
    for (int& id : node.inputs) {
      if (at(id) < read_narrow_.size() && read_narrow_[at(id)] && !is_narrow(id)) id = in_other_width(id, node);
    }
    Widths widths;
    for (const int id : node.inputs) widths.in.push_back(is_narrow(id));
    for (const int id : node.outputs) widths.out.push_back(wanted_[at(id)]);
    node.op->choose(widths);
    if (!runs(node, widths)) widths.all(false);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (has_width(node.inputs[i]) && is_narrow(node.inputs[i]) != widths.in[i]) {
        node.inputs[i] = in_other_width(node.inputs[i], node);
      }
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (has_width(node.outputs[i])) graph_.set_dtype(node.outputs[i], dtype_of(widths.out[i]));
      producer_[at(node.outputs[i])] = static_cast<int>(placed_.size());
    }
    placed_.push_back(std::move(node));
  }

  bool runs(const Node& node, const Widths& widths) const {
    std::vector<Type> in = graph_.input_types(node), out = graph_.output_types(node);
    if (node.op->view_offset(in) >= 0) return true;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (has_width(node.inputs[i])) in[i].dtype = dtype_of(widths.in[i]);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (has_width(node.outputs[i])) out[i].dtype = dtype_of(widths.out[i]);
    }
    return backend_.has(*node.op, in, out);
  }

  // The same numbers in the other width, made when they are asked for the first time: by whoever computes them where it
  // can, else by a conversion in front of `reader`.
  int in_other_width(int id, const Node& reader) {
    int& known = other_[at(id)];
    if (known >= 0) return known;
    const bool to_narrow = !is_narrow(id);
    Type type = graph_.value(id).type;
    type.dtype = dtype_of(to_narrow);
    const int made = graph_.add_value(
        {.type = type, .role = Role::computed, .name = graph_.value(id).name + (to_narrow ? "#narrow" : "#wide")});
    known = made;
    other_.push_back(id);
    wanted_.push_back(false);
    producer_.push_back(-1);
    if (graph_.value(id).role == Role::parameter) {
      add_parameter(id, made);
    } else if (!add_twin(id, made)) {
      producer_[at(made)] = static_cast<int>(placed_.size());
      placed_.push_back({.op = std::make_shared<CastAll>(type.dtype),
                         .inputs = {id},
                         .outputs = {made},
                         .scope = reader.scope,
                         .segment = reader.segment,
                         .backward = reader.backward});
    }
    return made;
  }

  void add_parameter(int id, int made) {
    if (parameters_.op == nullptr) parameters_.op = std::make_shared<CastAll>(DType::bf16);
    parameters_.inputs.push_back(id);
    parameters_.outputs.push_back(made);
  }

  bool add_twin(int id, int made) {
    const int index = producer_[at(id)];
    if (index < 0 || placed_[at(index)].outputs[0] != id) return false;
    Node& producer = placed_[at(index)];
    OpPtr twin = producer.op->with_twin();
    std::vector<Type> out = graph_.output_types(producer);
    out.push_back(graph_.value(made).type);
    if (twin == nullptr || !backend_.has(*twin, graph_.input_types(producer), out)) return false;
    producer.op = std::move(twin);
    producer.outputs.push_back(made);
    producer_[at(made)] = index;
    return true;
  }

  void widen_outputs() {
    std::vector<int> stands_for(graph_.values().size());
    std::iota(stands_for.begin(), stands_for.end(), 0);
    for (const Output& output : graph_.outputs()) {
      if (!is_narrow(output.value) || stands_for[at(output.value)] != output.value) continue;
      const Node reader = placed_[at(producer_[at(output.value)])];
      stands_for[at(output.value)] = in_other_width(output.value, reader);
    }
    graph_.redirect_outputs(stands_for);
  }

  Graph& graph_;
  const Backend& backend_;
  std::vector<bool> wanted_;
  std::vector<int> other_;         // by value: the same in the other width; -1 = there is none yet
  std::vector<int> producer_;      // by value: in placed_; -1 = persistent
  std::vector<bool> read_narrow_;  // by value of before: a stream that begins narrow
  std::vector<Node> placed_;
  Node parameters_;  // the conversion of all parameters
};

}  // namespace

void narrow(Graph& graph, const Backend& backend) { Narrowing(graph, backend).run(); }

}  // namespace norma
