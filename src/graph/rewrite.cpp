#include "norma/graph/rewrite.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/graph/kernel.h"

namespace norma {
namespace {

DType widened(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

}  // namespace

Rewriter::Rewriter(Graph& graph)
    : graph_(graph),
      nodes_(graph.take_nodes()),
      removed_(nodes_.size(), false),
      producers_(graph.values().size(), -1),
      newest_reader_(graph.values().size(), -1),
      reads_(graph.values().size(), 0),
      is_output_(graph.values().size(), false) {
  for (int index = 0; index < size(); ++index) index_node(index);
  for (const Output& output : graph.outputs()) is_output_[static_cast<std::size_t>(output.value)] = true;
}

void Rewriter::index_node(int index) {
  for (const int id : node(index).inputs) {
    int& newest = newest_reader_[static_cast<std::size_t>(id)];
    reader_list_.push_back({index, newest});
    newest = static_cast<int>(reader_list_.size()) - 1;
    ++reads_[static_cast<std::size_t>(id)];
  }
  for (const int id : node(index).outputs) producers_[static_cast<std::size_t>(id)] = index;
}

void Rewriter::unindex_node(int index) {
  for (const int id : node(index).inputs) --reads_[static_cast<std::size_t>(id)];
  for (const int id : node(index).outputs) producers_[static_cast<std::size_t>(id)] = -1;
}

bool Rewriter::private_to(int value, int reader) const {
  return !is_output(value) && reads_[static_cast<std::size_t>(value)] == 1 && reads(reader, value);
}

bool Rewriter::reads(int reader, int value) const {
  const Ids& inputs = node(reader).inputs;
  return alive(reader) && std::find(inputs.begin(), inputs.end(), value) != inputs.end();
}

bool Rewriter::available_before(std::span<const int> values, int position) const {
  return std::all_of(values.begin(), values.end(), [&](int id) { return producer(id) < position; });
}

bool Rewriter::unread_before(std::span<const int> values, int position, int except) const {
  return std::all_of(values.begin(), values.end(), [&](int id) {
    for (int at = newest_reader_[static_cast<std::size_t>(id)]; at >= 0;) {
      const Reader& reader = reader_list_[static_cast<std::size_t>(at)];
      if (reader.node < position && reader.node != except && reads(reader.node, id)) return false;
      at = reader.next;
    }
    return true;
  });
}

void Rewriter::replace(int position, std::span<const int> others, OpPtr op, const std::vector<int>& inputs,
                       std::vector<int> outputs) {
  for (const int other : others) {
    unindex_node(other);
    removed_[static_cast<std::size_t>(other)] = true;
  }
  unindex_node(position);
  Node& target = nodes_[static_cast<std::size_t>(position)];
  target.op = std::move(op);
  target.inputs = inputs;
  // Ops have their rules for wide tensors: where widths have been chosen, shapes are what there is to check.
  std::vector<Type> in = graph_.input_types(target);
  const bool narrow = std::any_of(in.begin(), in.end(), [](const Type& type) { return type.dtype == DType::bf16; });
  for (Type& type : in) type.dtype = widened(type.dtype);
  const std::vector<Type> types = target.op->infer(in);
  NORMA_ASSERT(types.size() == outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] < 0) {
      NORMA_ASSERT(!narrow);
      outputs[i] = graph_.add_value(
          {.type = types[i], .role = Role::computed, .name = graph_.computed_name(target, static_cast<int>(i))});
      producers_.push_back(-1);
      newest_reader_.push_back(-1);
      reads_.push_back(0);
      is_output_.push_back(false);
    }
    const Type& made = graph_.value(outputs[i]).type;
    NORMA_ASSERT(made.shape == types[i].shape && widened(made.dtype) == types[i].dtype);
  }
  target.outputs = outputs;
  index_node(position);
}

void Rewriter::commit() {
  std::vector<Node> kept;
  kept.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!removed_[i]) kept.push_back(std::move(nodes_[i]));
  }
  graph_.replace_nodes(std::move(kept));
}

std::span<const Rewrite> Backend::rewrites_of_lean() const { return {}; }

std::unordered_map<std::string, int> fuse(Graph& graph, std::span<const Rewrite> rewrites) {
  std::unordered_map<std::string, int> fired;
  if (rewrites.empty()) return fired;
  Rewriter rewriter(graph);
  for (const Rewrite& rewrite : rewrites) {
    int& count = fired[rewrite.name];
    for (int index = 0; index < rewriter.size(); ++index) {
      while (rewriter.alive(index) && rewrite.apply(rewriter, index)) ++count;
    }
  }
  rewriter.commit();
  return fired;
}

}  // namespace norma
