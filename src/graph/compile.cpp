// From a graph to a plan: a list of passes. The first ones change the graph, the later ones fill in the plan.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "graph/index.h"
#include "graph/lanes.h"
#include "graph/layout.h"
#include "graph/lower.h"
#include "graph/memory_map.h"
#include "graph/narrow.h"
#include "graph/recompute.h"
#include "graph/schedule.h"
#include "norma/core/error.h"
#include "norma/graph/plan.h"

namespace norma {

class Compilation {
 public:
  enum class After { kept, taken };  // the graph, when it has been compiled
  Compilation(Graph& graph, const Backend& backend, const CompileOptions& options, After after)
      : graph_(graph), backend_(backend), options_(options), after_(after) {}

  std::shared_ptr<const Plan> run() {
    check_that_something_runs();
    check_total_bytes();
    fuse(graph_, options_.rewrites ? std::span<const Rewrite>(*options_.rewrites) : backend_.rewrites());
    lower(graph_, backend_);
    if (options_.narrow) narrow(graph_, backend_);
    recompute();
    schedule(graph_);
    make_kernels();
    share_memory();
    place_persistent();
    find_lifetimes();
    place_transient();
    aim_steps();
    take_graph();
    name_slots();
    return plan_;
  }

 private:
  void check_that_something_runs() const;
  void check_total_bytes() const;
  void recompute() const;
  void make_kernels();      // one step for every node that is no view
  void share_memory();      // which values lie in the same memory
  void place_persistent();  // in order of role
  void find_lifetimes();    // of everything else, and what steps of different lanes wait for
  std::vector<int> find_joins();
  void place_transient();
  void aim_steps();  // at their arguments
  void take_graph();
  void name_slots();

  std::int64_t room(std::int64_t bytes) const;    // that a tensor takes
  std::int64_t padded(std::int64_t bytes) const;  // to the backend's alignment
  void touch(int id, int from, int to);           // `id` must exist during these steps

  Graph& graph_;
  const Backend& backend_;
  const CompileOptions& options_;
  const After after_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  std::unique_ptr<const MemoryMap> memory_;  // from the pass that shares memory on
  std::vector<Buffer> buffers_;              // one per root that is not persistent, one per scratch
  std::vector<int> buffer_of_;               // by root; -1 = none
  std::vector<int> scratch_of_;              // buffer by step; -1 = none
  std::size_t persistent_ = 0;               // values that are
};

std::shared_ptr<const Plan> compile(Graph& graph, const Backend& backend, const CompileOptions& options) {
  return Compilation(graph, backend, options, Compilation::After::kept).run();
}

std::shared_ptr<const Plan> compile(Graph&& graph, const Backend& backend, const CompileOptions& options) {
  return Compilation(graph, backend, options, Compilation::After::taken).run();
}

void Compilation::check_that_something_runs() const {
  const bool updates = std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                                   [](const Node& node) { return !node.op->updates().empty(); });
  if (graph_.outputs().empty() && !updates) fail("the graph has no output and no update: nothing would run");
}

// Far beyond any machine, and far enough inside 64 bits that no sum of sizes overflows.
void Compilation::check_total_bytes() const {
  constexpr double kMostBytes = 0x1p60;
  double total = 0;
  const Value* largest = nullptr;
  for (const Value& value : graph_.values()) {
    total += static_cast<double>(value.type.bytes());
    if (largest == nullptr || value.type.bytes() > largest->type.bytes()) largest = &value;
  }
  if (total > kMostBytes) {
    fail("the plan needs {:.3g} bytes, more than any machine has; its largest tensor is '{}' {}", total, largest->name,
         largest->type.str());
  }
}

void Compilation::recompute() const {
  if (options_.keep == Keep::all) return recompute_segments(graph_, options_.recompute_every);
  if (options_.recompute_every != 0) {
    fail("keep is lean and recompute_every is {}: choose one, either keeps less than all activations",
         options_.recompute_every);
  }
  recompute_cheap_values(graph_);
  if (!options_.rewrites) fuse(graph_, backend_.rewrites_of_lean());
}

void Compilation::make_kernels() {
  const std::vector<bool> needed = needed_nodes(graph_, Watching::no);
  plan_->steps_.reserve(needed.size());
  std::vector<Type> in_room, out_room;
  for (std::size_t index = 0; index < graph_.nodes().size(); ++index) {
    const Node& node = graph_.nodes()[index];
    const std::span<const Type> in = graph_.input_types(node, in_room);
    if (node.op->views() && node.op->view_offset(in) >= 0) continue;
    plan_->steps_.push_back({.node = static_cast<int>(index),
                             .kernel = node.again
                                           ? backend_.make_again(*node.op, in, graph_.output_types(node, out_room))
                                           : backend_.make(*node.op, in, graph_.output_types(node, out_room)),
                             .inputs = static_cast<int>(node.inputs.size()),
                             .only_watched = !needed[index]});
  }
}

void Compilation::share_memory() {
  std::vector<int> lanes(graph_.nodes().size(), 0);
  for (const Step& step : plan_->steps_) lanes[at(step.node)] = step.kernel->lane;
  memory_ = std::make_unique<const MemoryMap>(graph_, lanes);
}

void Compilation::place_persistent() {
  plan_->value_offsets_.assign(graph_.values().size(), -1);
  std::vector<std::pair<Role, std::size_t>> persistent;
  for (std::size_t id = 0; const Value& value : graph_.values()) {
    if (value.role != Role::computed) persistent.emplace_back(value.role, id);
    ++id;
  }
  std::int64_t end = 0;
  for (const Role wanted : {Role::parameter, Role::state, Role::input, Role::constant}) {
    for (const auto& [role, id] : persistent) {
      if (role != wanted) continue;
      plan_->value_offsets_[id] = end;
      end += room(graph_.values()[id].type.bytes());
    }
  }
  persistent_ = persistent.size();
  plan_->persistent_bytes_ = end;
}

// By step: the step of the main lane after which it has certainly run.
std::vector<int> Compilation::find_joins() {
  const auto is_aside = [](const Step& step) { return step.kernel->lane != 0; };
  if (std::none_of(plan_->steps_.begin(), plan_->steps_.end(), is_aside)) {
    std::vector<int> joins(plan_->steps_.size());
    std::iota(joins.begin(), joins.end(), 0);
    return joins;
  }
  Lanes lanes(backend_.most_ahead());
  for (Step& step : plan_->steps_) {
    const Node& node = graph_.node(step.node);
    std::vector<int> reads, writes;
    for (const int id : node.inputs) reads.push_back(memory_->root(id));
    for (const int id : node.outputs) writes.push_back(memory_->root(id));
    step.waits_for = lanes.add(step.kernel->lane, reads, writes);
  }
  return lanes.joins();
}

void Compilation::find_lifetimes() {
  const std::vector<int> joins = find_joins();
  const int steps = static_cast<int>(plan_->steps_.size());
  buffer_of_.assign(graph_.values().size(), -1);
  scratch_of_.assign(plan_->steps_.size(), -1);
  for (int index = 0; index < steps; ++index) {
    const Step& step = plan_->steps_[at(index)];
    const Node& node = graph_.node(step.node);
    for (const int id : node.inputs) touch(id, index, joins[at(index)]);
    for (const int id : node.outputs) touch(id, index, joins[at(index)]);
    if (const std::int64_t bytes = step.kernel->needs.scratch_bytes; bytes > 0) {
      scratch_of_[at(index)] = static_cast<int>(buffers_.size());
      buffers_.push_back({.bytes = padded(bytes), .first = index, .last = joins[at(index)], .needed = bytes});
    }
  }
  for (const Output& output : graph_.outputs()) touch(output.value, steps, steps);
}

void Compilation::touch(int id, int from, int to) {
  const int root = memory_->root(id);
  if (graph_.value(root).role != Role::computed || !memory_->needs_memory(id)) return;
  int& buffer = buffer_of_[at(root)];
  if (buffer < 0) {
    buffer = static_cast<int>(buffers_.size());
    const std::int64_t bytes = graph_.value(root).type.bytes();
    buffers_.push_back({.bytes = room(bytes), .first = from, .last = to, .needed = bytes});
  }
  buffers_[at(buffer)].last = std::max(buffers_[at(buffer)].last, to);
}

void Compilation::place_transient() {
  const LayoutResult layout = lay_out(buffers_, static_cast<int>(plan_->steps_.size()));
  plan_->transient_bytes_ = layout.bytes;
  plan_->peak_live_bytes_ = layout.peak_live_bytes;
  for (int id = 0; id < static_cast<int>(graph_.values().size()); ++id) {
    const int root = memory_->root(id);
    if (graph_.value(root).role != Role::computed) {
      plan_->value_offsets_[at(id)] = plan_->value_offsets_[at(root)] + memory_->offset_in_root(id);
    } else if (const int buffer = buffer_of_[at(root)]; buffer >= 0) {
      plan_->value_offsets_[at(id)] =
          plan_->persistent_bytes_ + buffers_[at(buffer)].offset + memory_->offset_in_root(id);
    }
  }
}

void Compilation::aim_steps() {
  const std::vector<bool> needed = needed_values(graph_, Watching::no);
  for (std::size_t index = 0; index < plan_->steps_.size(); ++index) {
    Step& step = plan_->steps_[index];
    const Node& node = graph_.node(step.node);
    step.offsets.reserve(node.inputs.size() + node.outputs.size());
    for (const int id : node.inputs) step.offsets.push_back(plan_->value_offsets_[at(id)]);
    for (const int id : node.outputs) step.offsets.push_back(plan_->value_offsets_[at(id)]);
    for (std::size_t out = 0; out < node.outputs.size(); ++out) {
      const std::size_t place = node.inputs.size() + out;
      if (needed[at(node.outputs[out])] || step.offsets[place] < 0 || !node.op->spared_output(static_cast<int>(out)))
        continue;
      if (step.unwatched_offsets.empty()) step.unwatched_offsets = step.offsets;
      step.unwatched_offsets[place] = -1;
    }
    if (const int scratch = scratch_of_[index]; scratch >= 0) {
      step.scratch = plan_->persistent_bytes_ + buffers_[at(scratch)].offset;
    }
  }
}

void Compilation::name_slots() {
  plan_->slots_.reserve(persistent_ + graph_.outputs().size());
  for (std::size_t id = 0; const Value& value : plan_->values_) {
    if (value.role != Role::computed) plan_->slots_[value.name] = {value.type, value.role, plan_->value_offsets_[id]};
    ++id;
  }
  plan_->output_names_.reserve(graph_.outputs().size());
  for (const Output& output : graph_.outputs()) {
    const Value& value = plan_->values_[at(output.value)];
    plan_->slots_[plan_->output_names_.emplace_back(output.name)] = {value.type, value.role,
                                                                     plan_->value_offsets_[at(output.value)]};
  }
}

void Compilation::take_graph() {
  plan_->device_ = backend_.name();
  if (after_ == After::taken) {
    plan_->nodes_ = graph_.take_nodes();
    plan_->values_ = graph_.take_values();
  } else {
    plan_->nodes_ = graph_.nodes();
    plan_->values_ = graph_.values();
  }
}

std::int64_t Compilation::padded(std::int64_t bytes) const {
  const std::int64_t alignment = backend_.alignment();
  return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t Compilation::room(std::int64_t bytes) const { return padded(bytes) + backend_.spacing(bytes); }

}  // namespace norma
