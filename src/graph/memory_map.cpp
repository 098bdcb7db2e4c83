#include "graph/memory_map.h"

#include <algorithm>
#include <numeric>

#include "graph/schedule.h"

namespace norma {

MemoryMap::MemoryMap(const Graph& graph, const std::vector<int>& lanes)
    : graph_(graph),
      root_(graph.values().size()),
      offset_(root_.size(), 0),
      reads_(root_.size(), 0),
      readable_(root_.size(), false),
      aside_(root_.size(), false),
      written_(root_.size(), false) {
  std::iota(root_.begin(), root_.end(), 0);
  count_reads(lanes);
  share();
}

void MemoryMap::count_reads(const std::vector<int>& lanes) {
  const std::vector<int> base = view_bases(graph_);
  for (std::size_t index = 0; index < lanes.size(); ++index) {
    const Node& node = graph_.nodes()[index];
    for (const int id : node.inputs) ++reads_[at(base[at(id)])];
    if (lanes[index] == 0) continue;
    for (const int id : node.inputs) aside_[at(base[at(id)])] = true;
    for (const int id : node.outputs) aside_[at(base[at(id)])] = true;
  }
  for (const Output& output : graph_.outputs()) readable_[at(base[at(output.value)])] = true;
}

void MemoryMap::join(int id, int target, std::int64_t offset) {
  root_[at(id)] = root(target);
  offset_[at(id)] = offset_[at(target)] + offset;
}

void MemoryMap::share() {
  for (const Node& node : graph_.nodes()) {
    for (const int id : node.inputs) --reads_[at(root(id))];
    if (const std::int64_t view = graph_.view_offset(node); view >= 0) {
      join(node.outputs[0], node.inputs[0], view);  // the base's reads already include those of the view
    } else {
      share_outputs(node);
    }
  }
  for (std::size_t id = 0; id < root_.size(); ++id) {
    if (persistent(static_cast<int>(id))) written_[id] = true;
  }
}

void MemoryMap::share_outputs(const Node& node) {
  overwritten_.clear();
  std::vector<bool> taken(node.outputs.size(), false);
  for (const Op::Update update : node.op->updates()) {
    join(node.outputs[at(update.out)], node.inputs[at(update.in)], 0);
    taken[at(update.out)] = true;
  }
  for (std::size_t out = 0; out < node.outputs.size(); ++out) {
    if (taken[out]) continue;
    const int id = node.outputs[out];
    const bool unread = reads_[at(id)] == 0 && !readable_[at(id)];
    written_[at(id)] = !(unread && node.op->optional_output(static_cast<int>(out)));
    if (written_[at(id)]) reuse_input(node, static_cast<int>(out));
  }
}

void MemoryMap::reuse_input(const Node& node, int out) {
  const int id = node.outputs[at(out)];
  const std::int64_t bytes = graph_.value(id).type.bytes();
  for (std::size_t in = 0; in < node.inputs.size(); ++in) {
    const int source = node.inputs[in];
    const int buffer = root(source);
    const bool same_size = graph_.value(source).type.bytes() == bytes && graph_.value(buffer).type.bytes() == bytes;
    if (!node.op->can_overwrite(out, static_cast<int>(in)) || !same_size || persistent(buffer) || kept(buffer) ||
        reads_[at(buffer)] != 0 || offset_[at(source)] != 0) {
      continue;
    }
    const auto uses =
        std::count_if(node.inputs.begin(), node.inputs.end(), [&](int other) { return root(other) == buffer; });
    if (uses != 1 || std::find(overwritten_.begin(), overwritten_.end(), buffer) != overwritten_.end()) continue;
    // Reads of the new value now keep the buffer alive.
    reads_[at(buffer)] += reads_[at(id)];
    if (readable_[at(id)]) readable_[at(buffer)] = true;
    if (aside_[at(id)]) aside_[at(buffer)] = true;
    join(id, source, 0);
    overwritten_.push_back(buffer);
    return;
  }
}

}  // namespace norma
