#include "graph/recompute.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "graph/index.h"
#include "norma/core/error.h"

namespace norma {
namespace {

class Recomputation {
 public:
  Recomputation(Graph& graph, int every) : graph_(graph), every_(every), kept_(graph.values().size(), true) {
    for (const Node& node : graph.nodes()) last_group_ = std::max(last_group_, group_of(node));
    mark_inner_values();
  }

  void run() {
    // Backward nodes arrive group by group, last group first; a group's inside is recomputed before its first reader.
    std::vector<Node> result;
    const std::vector<Node> nodes = graph_.nodes();  // a copy: cloning adds values
    std::map<int, std::vector<int>> forward;         // group -> node indices in order
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (group_of(nodes[i]) >= 0) forward[group_of(nodes[i])].push_back(static_cast<int>(i));
    }
    for (Node node : nodes) {
      if (node.backward) {
        for (const int id : node.inputs) {
          if (!kept_[at(id)] && !clones_.contains(id)) {
            clone_group(nodes, forward[group_of(graph_.node(graph_.value(id).producer))], result);
          }
        }
        for (int& id : node.inputs) {
          if (!kept_[at(id)]) id = clones_.at(id);
        }
      }
      result.push_back(std::move(node));
    }
    graph_.replace_nodes(std::move(result));
  }

 private:
  int group_of(const Node& node) const { return node.backward || node.segment < 0 ? -1 : node.segment / every_; }

  // A value is inner when no other group reads it; nodes outside of all groups (probes, the final norm) read the first
  // edition. The last group is kept whole: its backward follows at once, so recomputing it would save nothing. Nodes
  // that update state must not run twice.
  void mark_inner_values() {
    for (const Node& node : graph_.nodes()) {
      const int group = group_of(node);
      if (group < 0 || group == last_group_ || !node.op->updates().empty()) continue;
      for (const int id : node.outputs) kept_[at(id)] = false;
    }
    for (const Node& node : graph_.nodes()) {
      if (node.backward || group_of(node) < 0) continue;
      for (const int id : node.inputs) {
        const int producer = graph_.value(id).producer;
        if (producer >= 0 && group_of(graph_.node(producer)) != group_of(node)) kept_[at(id)] = true;
      }
    }
    for (const Output& output : graph_.outputs()) kept_[at(output.value)] = true;
  }

  void clone_group(const std::vector<Node>& nodes, const std::vector<int>& members, std::vector<Node>& result) {
    for (const int index : members) {
      Node clone = nodes[at(index)];
      const bool inner =
          std::any_of(clone.outputs.begin(), clone.outputs.end(), [&](int id) { return !kept_[at(id)]; });
      if (!inner) continue;
      clone.backward = true;
      clone.segment = -1;
      for (int& id : clone.inputs) {
        if (!kept_[at(id)]) id = clones_.at(id);
      }
      for (int& id : clone.outputs) id = add_edition(graph_, id, clones_);
      result.push_back(std::move(clone));
    }
  }

  Graph& graph_;
  int every_;
  int last_group_ = -1;
  std::vector<bool> kept_;
  std::unordered_map<int, int> clones_;
};

}  // namespace

int add_edition(Graph& graph, int id, std::unordered_map<int, int>& editions) {
  Value value = graph.value(id);
  value.name += "~";
  const int copy = graph.add_value(std::move(value));
  editions.emplace(id, copy);
  return copy;
}

void recompute_segments(Graph& graph, int every) {
  if (every < 0) fail("recompute_every is {}; expected 0 (keep everything) or a number of layers", every);
  if (every == 0 || graph.segments() == 0) return;
  Recomputation(graph, every).run();
}

}  // namespace norma
