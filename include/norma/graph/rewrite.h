// Named fusions. Each is local, keeps the function computed, and has a test that fused = unfused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "norma/graph/graph.h"

namespace norma {

// A graph opened for rewriting: who reads what, and replacement of matched nodes.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  bool alive(int node) const { return !removed_[static_cast<std::size_t>(node)]; }
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }

  // The node's op when it is an `OpType`, else null.
  template <typename OpType>
  const OpType* as(int node) const {
    static_assert(std::is_final_v<OpType>);  // one comparison instead of a search through its bases
    if (node < 0 || !alive(node)) return nullptr;
    const Op& op = *nodes_[static_cast<std::size_t>(node)].op;
    return typeid(op) == typeid(OpType) ? static_cast<const OpType*>(&op) : nullptr;
  }

  int producer(int value) const { return producers_[static_cast<std::size_t>(value)]; }
  bool is_output(int value) const { return is_output_[static_cast<std::size_t>(value)]; }
  // Read exactly once, by one node, and not an output: it can disappear inside a fusion.
  bool private_to(int value, int reader) const;
  // Whether every one of `values` exists before node `position` runs.
  bool available_before(std::span<const int> values, int position) const;
  // Whether nobody reads any of `values` before node `position` (fusing at `position` would come too late for them).
  bool unread_before(std::span<const int> values, int position, int except) const;

  // Puts `op` in the place of node `position`, removing `others`. `outputs` are existing value ids that now come from
  // this node; -1 makes a new value of the inferred type.
  void replace(int position, std::span<const int> others, OpPtr op, const std::vector<int>& inputs,
               std::vector<int> outputs);

  // Writes the rewritten nodes back to the graph.
  void commit();

 private:
  void index_node(int index);
  void unindex_node(int index);
  bool reads(int reader, int value) const;

  Graph& graph_;
  std::vector<Node> nodes_;
  std::vector<bool> removed_;
  std::vector<int> producers_;
  // Readers of a value, newest first, also those that read no more: a constant of every layer has too many to search.
  // Chained through one list, for one list per value is mostly time to allocate.
  struct Reader {
    int node;
    int next;  // in the list; -1 = none
  };
  std::vector<Reader> reader_list_;
  std::vector<int> newest_reader_;  // by value: in the list; -1 = none
  std::vector<int> reads_;          // how often a value is read
  std::vector<bool> is_output_;
};

struct Rewrite {
  std::string name;
  // Tries to fuse at node `index`; true when it changed the graph.
  bool (*apply)(Rewriter& rewriter, int index);
};

// Applies each rewrite over the whole graph in order; returns how often each fired.
std::unordered_map<std::string, int> fuse(Graph& graph, std::span<const Rewrite> rewrites);

}  // namespace norma
