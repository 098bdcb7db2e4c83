#include "norma/graph/plan.h"

#include <algorithm>

#include "graph/index.h"
#include "graph/layout.h"
#include "graph/recompute.h"
#include "graph/schedule.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/core/names.h"

namespace norma {
namespace {

// Which values share memory: views with their base, updates with what they update, and outputs written over inputs
// that die at the same node.
class MemoryMap {
 public:
  explicit MemoryMap(const Graph& graph)
      : graph_(graph), root_(graph.values().size()), offset_(graph.values().size(), 0) {
    for (std::size_t id = 0; id < root_.size(); ++id) root_[id] = static_cast<int>(id);
    reads_.assign(root_.size(), 0);
    pinned_.assign(root_.size(), false);
    written_.assign(root_.size(), false);
    count_reads();
    share();
  }

  int root(int id) const { return root_[at(id)]; }
  std::int64_t offset_in_root(int id) const { return offset_[at(id)]; }
  bool needs_memory(int id) const { return written_[at(root_[at(id)])]; }

 private:
  bool persistent(int id) const { return graph_.value(id).role != Role::computed; }

  void count_reads() {
    const std::vector<int> base = view_bases(graph_);
    for (const Node& node : graph_.nodes()) {
      for (const int id : node.inputs) ++reads_[at(base[at(id)])];
    }
    for (const Output& output : graph_.outputs()) pinned_[at(base[at(output.value)])] = true;
  }

  void join(int id, int target, std::int64_t offset) {
    root_[at(id)] = root(target);
    offset_[at(id)] = offset_[at(target)] + offset;
  }

  void share() {
    for (const Node& node : graph_.nodes()) {
      const std::vector<Type> types = graph_.input_types(node);
      for (const int id : node.inputs) --reads_[at(root(id))];
      if (const std::int64_t view = node.op->view_offset(types); view >= 0) {
        // The base's reads already include those of the view.
        join(node.outputs[0], node.inputs[0], view);
        continue;
      }
      overwritten_.clear();
      std::vector<bool> taken(node.outputs.size(), false);
      for (const Op::Update update : node.op->updates()) {
        join(node.outputs[at(update.out)], node.inputs[at(update.in)], 0);
        taken[at(update.out)] = true;
      }
      for (std::size_t out = 0; out < node.outputs.size(); ++out) {
        const int id = node.outputs[out];
        const bool unread = reads_[at(id)] == 0 && !pinned_[at(id)];
        if (taken[out]) continue;
        written_[at(id)] = !(unread && node.op->optional_output(static_cast<int>(out)));
        if (written_[at(id)]) reuse_input(node, static_cast<int>(out));
      }
    }
    for (std::size_t id = 0; id < root_.size(); ++id) {
      if (persistent(static_cast<int>(id))) written_[id] = true;
    }
  }

  void reuse_input(const Node& node, int out) {
    const int id = node.outputs[at(out)];
    for (std::size_t in = 0; in < node.inputs.size(); ++in) {
      const int source = node.inputs[in];
      const int buffer = root(source);
      const bool same_size = graph_.value(source).type.bytes() == graph_.value(id).type.bytes() &&
                             graph_.value(buffer).type.bytes() == graph_.value(id).type.bytes();
      const auto uses =
          std::count_if(node.inputs.begin(), node.inputs.end(), [&](int other) { return root(other) == buffer; });
      if (!node.op->can_overwrite(out, static_cast<int>(in)) || !same_size || persistent(buffer) ||
          pinned_[at(buffer)] || reads_[at(buffer)] != 0 || uses != 1 || offset_[at(source)] != 0 ||
          std::find(overwritten_.begin(), overwritten_.end(), buffer) != overwritten_.end()) {
        continue;
      }
      // Reads of the new value now keep the buffer alive.
      reads_[at(buffer)] += reads_[at(id)];
      if (pinned_[at(id)]) pinned_[at(buffer)] = true;
      join(id, source, 0);
      overwritten_.push_back(buffer);
      return;
    }
  }

  const Graph& graph_;
  std::vector<int> root_;
  std::vector<std::int64_t> offset_;
  std::vector<std::int64_t> reads_;  // by root: reads still to come
  std::vector<bool> pinned_;         // by root: readable after the step
  std::vector<bool> written_;        // by root
  std::vector<int> overwritten_;     // buffers that an output of the current node has taken: one output each
};

// Far beyond any machine, and far enough inside 64 bits that no sum of sizes overflows.
void check_total_bytes(const Graph& graph) {
  constexpr double kMostBytes = 0x1p60;
  double total = 0;
  const Value* largest = nullptr;
  for (const Value& value : graph.values()) {
    total += static_cast<double>(value.type.bytes());
    if (largest == nullptr || value.type.bytes() > largest->type.bytes()) largest = &value;
  }
  if (total > kMostBytes) {
    fail("the plan needs {:.3g} bytes, more than any machine has; its largest tensor is '{}' {}", total, largest->name,
         largest->type.str());
  }
}

}  // namespace

const Slot& Plan::slot(std::string_view name) const {
  const auto found = slots_.find(std::string(name));
  if (found != slots_.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& entry : slots_) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  fail("the plan has no tensor named '{}'{}", name, did_you_mean(name, names));
}

std::vector<std::string> Plan::slot_names(Role role) const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) {
    if (slot.role == role) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Cost Plan::cost() const {
  Cost total;
  for (const Node& node : nodes_) {
    std::vector<Type> in, out;
    for (const int id : node.inputs) in.push_back(values_[at(id)].type);
    for (const int id : node.outputs) out.push_back(values_[at(id)].type);
    const Cost cost = node.op->cost(in, out);
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

std::string Plan::node_name(int node) const { return values_[at(nodes_[at(node)].outputs[0])].name; }

std::string Plan::memory_report() const {
  std::unordered_map<std::string, std::int64_t> by_role;
  for (const auto& [name, slot] : slots_) {
    if (slot.role != Role::computed) by_role[std::string(name_of(slot.role))] += slot.type.bytes();
  }
  std::string text;
  for (const Role role : {Role::parameter, Role::state, Role::input, Role::constant}) {
    text += fmt::format("{:<12} {}\n", name_of(role), describe_bytes(by_role[std::string(name_of(role))]));
  }
  text += fmt::format("{:<12} {} (at least {} live at once)\n", "activations", describe_bytes(transient_bytes_),
                      describe_bytes(peak_live_bytes_));
  text += fmt::format("{:<12} {}\n", "one member", describe_bytes(member_bytes()));
  for (const int id : largest_values(5)) {
    const Value& value = values_[at(id)];
    text += fmt::format("  {} {} {}\n", value.name, value.type.str(), describe_bytes(value.type.bytes()));
  }
  return text;
}

std::vector<int> Plan::largest_values(std::size_t count) const {
  std::vector<int> ids;
  std::unordered_map<std::int64_t, int> at_offset;  // views and in-place results share memory: the first one stands
  for (std::size_t id = 0; id < values_.size(); ++id) {
    if (value_offsets_[id] >= 0) ids.push_back(static_cast<int>(id));
  }
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int a, int b) { return values_[at(a)].type.bytes() > values_[at(b)].type.bytes(); });
  std::erase_if(ids, [&](int id) { return !at_offset.emplace(value_offsets_[at(id)], id).second; });
  ids.resize(std::min(count, ids.size()));
  return ids;
}

std::shared_ptr<const Plan> compile(Graph& graph, const CompileOptions& options) {
  machine();  // settles the instruction set before any kernel pointer is taken
  if (graph.outputs().empty() && std::none_of(graph.nodes().begin(), graph.nodes().end(),
                                              [](const Node& node) { return !node.op->updates().empty(); })) {
    fail("the graph has no output and no update: nothing would run");
  }
  check_total_bytes(graph);
  fuse(graph, options.rewrites);
  recompute_segments(graph, options.recompute_every);
  schedule(graph);

  const auto plan = std::make_shared<Plan>();
  const MemoryMap memory(graph);
  const int steps = static_cast<int>(graph.nodes().size());
  plan->value_offsets_.assign(graph.values().size(), -1);

  // Persistent values first, in order of role, each on its own line.
  std::int64_t end = 0;
  for (const Role role : {Role::parameter, Role::state, Role::input, Role::constant}) {
    for (std::size_t id = 0; id < graph.values().size(); ++id) {
      if (graph.values()[id].role != role) continue;
      plan->value_offsets_[id] = end;
      end += spaced_bytes(graph.values()[id].type.bytes());
    }
  }
  plan->persistent_bytes_ = end;

  // Transient buffers, one per root, and one for each node's scratch.
  std::vector<Buffer> buffers;
  std::unordered_map<int, std::size_t> buffer_of;  // root -> buffer
  const auto touch = [&](int id, int step) {
    const int root = memory.root(id);
    if (graph.value(root).role != Role::computed || !memory.needs_memory(id)) return;
    const auto [entry, fresh] = buffer_of.emplace(root, buffers.size());
    if (fresh) {
      const std::int64_t bytes = graph.value(root).type.bytes();
      buffers.push_back({.bytes = spaced_bytes(bytes), .first = step, .last = step, .needed = bytes});
    }
    buffers[entry->second].last = std::max(buffers[entry->second].last, step);
  };
  std::vector<std::size_t> scratch_of(graph.nodes().size(), 0);
  const std::vector<bool> needed = needed_nodes(graph, Watching::no);
  for (int step = 0; step < steps; ++step) {
    const Node& node = graph.node(step);
    CpuKernel kernel = node.op->cpu(graph.input_types(node), graph.output_types(node));
    plan->worker_bytes_ = std::max(plan->worker_bytes_, align_up(kernel.worker_bytes));
    for (const int id : node.inputs) touch(id, step);
    for (const int id : node.outputs) touch(id, step);
    if (kernel.scratch_bytes > 0) {
      buffers.push_back(
          {.bytes = align_up(kernel.scratch_bytes), .first = step, .last = step, .needed = kernel.scratch_bytes});
      scratch_of[at(step)] = buffers.size();  // 1-based; 0 = none
    }
    plan->steps_.push_back({.node = step,
                            .kernel = std::move(kernel),
                            .offsets = {},
                            .inputs = static_cast<int>(node.inputs.size()),
                            .scratch = 0,
                            .only_watched = !needed[at(step)]});
  }
  for (const Output& output : graph.outputs()) touch(output.value, steps);
  const LayoutResult layout = lay_out(buffers, steps);
  plan->transient_bytes_ = layout.bytes;
  plan->peak_live_bytes_ = layout.peak_live_bytes;

  for (std::size_t id = 0; id < graph.values().size(); ++id) {
    const int root = memory.root(static_cast<int>(id));
    const auto buffer = buffer_of.find(root);
    if (graph.value(root).role != Role::computed) {
      plan->value_offsets_[id] = plan->value_offsets_[at(root)] + memory.offset_in_root(static_cast<int>(id));
    } else if (buffer != buffer_of.end()) {
      plan->value_offsets_[id] =
          plan->persistent_bytes_ + buffers[buffer->second].offset + memory.offset_in_root(static_cast<int>(id));
    }
  }
  for (Step& step : plan->steps_) {
    const Node& node = graph.node(step.node);
    for (const int id : node.inputs) step.offsets.push_back(plan->value_offsets_[at(id)]);
    for (const int id : node.outputs) step.offsets.push_back(plan->value_offsets_[at(id)]);
    if (const std::size_t scratch = scratch_of[at(step.node)]; scratch > 0) {
      step.scratch = plan->persistent_bytes_ + buffers[scratch - 1].offset;
    }
  }

  for (std::size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.role != Role::computed) plan->slots_[value.name] = {value.type, value.role, plan->value_offsets_[id]};
  }
  for (const Output& output : graph.outputs()) {
    const Value& value = graph.value(output.value);
    plan->slots_[output.name] = {value.type, value.role, plan->value_offsets_[at(output.value)]};
  }
  plan->nodes_ = graph.nodes();
  plan->values_ = graph.values();
  return plan;
}

}  // namespace norma
