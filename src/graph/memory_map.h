// Which values share memory: views with their base, updates with what they update, and outputs written over inputs that
// die at the same node.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/index.h"
#include "norma/graph/graph.h"

namespace norma {

class MemoryMap {
 public:
  // `lanes` by node. What a side lane touches is never written over: its readers may not have finished.
  MemoryMap(const Graph& graph, const std::vector<int>& lanes);

  int root(int id) const { return root_[at(id)]; }
  std::int64_t offset_in_root(int id) const { return offset_[at(id)]; }
  bool needs_memory(int id) const { return written_[at(root_[at(id)])]; }

 private:
  bool persistent(int id) const { return graph_.value(id).role != Role::computed; }
  bool kept(int root) const { return readable_[at(root)] || aside_[at(root)]; }
  void count_reads(const std::vector<int>& lanes);
  void join(int id, int target, std::int64_t offset);
  void share();
  void share_outputs(const Node& node);
  void reuse_input(const Node& node, int out);

  const Graph& graph_;
  std::vector<int> root_;
  std::vector<std::int64_t> offset_;
  std::vector<std::int64_t> reads_;  // by root: reads still to come
  std::vector<bool> readable_;       // by root: after the step
  std::vector<bool> aside_;          // by root: touched by a side lane
  std::vector<bool> written_;        // by root
  std::vector<int> overwritten_;     // buffers that an output of the current node has taken: one output each
};

}  // namespace norma
