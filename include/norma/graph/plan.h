// The compiled program of one step: a flat list of kernels over one arena whose size is known before step 0.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "norma/graph/graph.h"
#include "norma/graph/kernel.h"
#include "norma/graph/rewrite.h"

namespace norma {

// What stays in memory between forward and backward.
enum class Keep {
  all,
  lean,  // not what an op makes cheaply from something that stays: wide products, and attention of short sequences
};

struct CompileOptions {
  // Named fusions, applied in this order; not given: those of the backend.
  std::optional<std::vector<Rewrite>> rewrites = std::nullopt;
  // Layers per recomputation segment: only segment boundaries stay in memory between forward and backward, and the
  // inside is computed again when the backward pass arrives. 0 keeps everything; sqrt(layers) is the least memory.
  int recompute_every = 0;
  Keep keep = Keep::all;  // inside each layer; lean and recompute_every exclude each other
  // Mixed precision: tensors are bf16 where the ops' Op::choose says so, parameters and the residual stream stay f32.
  bool narrow = false;
};

// Whether a run computes the outputs that are only watched (Graph::watch).
enum class Watching { no, yes };

// One kernel call. Views have none.
struct Step {
  int node = 0;
  std::unique_ptr<const Kernel> kernel = nullptr;
  std::vector<std::int64_t> offsets = {};  // inputs, then outputs: bytes from the member's base; -1 = no memory
  std::vector<std::int64_t> unwatched_offsets = {};  // for runs that do not watch, where those differ
  int inputs = 0;
  std::int64_t scratch = 0;   // offset
  bool only_watched = false;  // left out of runs that do not watch
  // The step runs after all earlier steps of its lane, and after these steps of other lanes.
  std::vector<int> waits_for = {};
};

// A named tensor that the host reads or writes.
struct Slot {
  Type type = {};
  Role role = Role::computed;
  std::int64_t offset = 0;
};

class Plan {
 public:
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::deque<Value>& values() const { return values_; }

  const std::string& device() const { return device_; }  // the name of the backend that it was made for

  // One member's memory. Member m lives at base + m * member_bytes().
  std::int64_t member_bytes() const { return persistent_bytes_ + transient_bytes_; }
  std::int64_t persistent_bytes() const { return persistent_bytes_; }  // parameters, states, inputs, constants
  std::int64_t transient_bytes() const { return transient_bytes_; }
  std::int64_t peak_live_bytes() const { return peak_live_bytes_; }  // no layout of transients can be smaller

  const Slot& slot(std::string_view name) const;  // throws Error naming the nearest known name
  bool has_slot(std::string_view name) const { return slots_.contains(name); }
  std::vector<std::string> slot_names(Role role) const;  // sorted
  std::int64_t offset_of(int value) const { return value_offsets_[static_cast<std::size_t>(value)]; }

  Cost cost() const;                                         // of one member's step
  std::string node_name(int node) const;                     // "layers.3.attn.linear#41"
  std::string memory_report() const;                         // bytes by role, then the largest tensors
  std::vector<int> largest_values(std::size_t count) const;  // ids of values with memory of their own, largest first

 private:
  friend class Compilation;  // src/graph/compile.cpp

  std::string device_;
  std::vector<Node> nodes_;
  std::deque<Value> values_;
  std::vector<Step> steps_;
  std::vector<std::int64_t> value_offsets_;
  std::vector<std::string> output_names_;
  std::unordered_map<std::string_view, Slot> slots_;  // by names of values and outputs
  std::int64_t persistent_bytes_ = 0;
  std::int64_t transient_bytes_ = 0;
  std::int64_t peak_live_bytes_ = 0;
};

// Fuses, lowers, recomputes, drops what nobody reads, orders, lays out and asks the backend for kernels. Changes the
// graph.
std::shared_ptr<const Plan> compile(Graph& graph, const Backend& backend, const CompileOptions& options = {});
// Of a graph that nobody needs any more: the plan takes its nodes and values instead of a copy.
std::shared_ptr<const Plan> compile(Graph&& graph, const Backend& backend, const CompileOptions& options = {});

}  // namespace norma
