#include "graph/schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <vector>

#include "graph/index.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// The persistent values that nodes in a cycle of updates write. What still waits is the cycles and whatever comes after
// them; the latter is peeled off from its end.
std::string names_in_cycle(const Graph& graph, const Lists& successors, const std::vector<int>& waiting) {
  std::vector<bool> stuck(waiting.size());
  for (std::size_t index = 0; index < waiting.size(); ++index) stuck[index] = waiting[index] > 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t index = 0; index < stuck.size(); ++index) {
      const std::span<const int> next = successors[static_cast<int>(index)];
      const bool leads_on = std::any_of(next.begin(), next.end(), [&](int other) { return stuck[at(other)]; });
      if (!stuck[index] || leads_on) continue;
      stuck[index] = false;
      changed = true;
    }
  }
  std::set<std::string> names;
  for (std::size_t index = 0; index < waiting.size(); ++index) {
    if (!stuck[index]) continue;
    const Node& node = graph.nodes()[index];
    for (const Op::Update update : node.op->updates())
      names.insert("'" + graph.value(node.inputs[at(update.in)]).name + "'");
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::vector<int> view_bases(const Graph& graph) {
  std::vector<int> base(graph.values().size());
  for (std::size_t id = 0; id < base.size(); ++id) base[id] = static_cast<int>(id);
  for (const Node& node : graph.nodes()) {
    if (graph.view_offset(node) >= 0) base[at(node.outputs[0])] = base[at(node.inputs[0])];
  }
  return base;
}

constexpr std::int64_t kSummaryBytes = 256;

namespace {

struct Needed {
  std::vector<bool> nodes, values;
};

Needed what_is_needed(const Graph& graph, Watching watching) {
  std::vector<bool> wanted(graph.values().size(), false), needed(graph.nodes().size(), false);
  for (const Output& output : graph.outputs()) {
    if (watching == Watching::yes || !output.watched) wanted[at(output.value)] = true;
  }
  for (int index = static_cast<int>(graph.nodes().size()) - 1; index >= 0; --index) {
    const Node& node = graph.node(index);
    needed[at(index)] = !node.op->updates().empty() ||
                        std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) { return wanted[at(id)]; });
    if (!needed[at(index)]) continue;
    for (const int id : node.inputs) wanted[at(id)] = true;
  }
  return {std::move(needed), std::move(wanted)};
}

}  // namespace

std::vector<bool> needed_nodes(const Graph& graph, Watching watching) { return what_is_needed(graph, watching).nodes; }

std::vector<bool> needed_values(const Graph& graph, Watching watching) {
  return what_is_needed(graph, watching).values;
}

namespace {

// What has to run before what: a value's producer before its readers, readers of an old value before its update. Only
// among nodes that are needed.
class Order {
 public:
  Order(const Graph& graph, const std::vector<bool>& needed)
      : graph_(graph), needed_(needed), waiting_(graph.nodes().size(), 0), is_update_(graph.nodes().size(), false) {
    find_edges();
  }

  std::vector<int> run() {
    const Lists successors(waiting_.size(), edges_);
    using Entry = std::pair<int, int>;  // rank, index
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::vector<int> ordered;
    std::size_t wanted = 0;
    for (int index = 0; index < static_cast<int>(waiting_.size()); ++index) {
      if (!needed_[at(index)]) continue;
      ++wanted;
      if (waiting_[at(index)] == 0) ready.emplace(rank(index), index);
    }
    while (!ready.empty()) {
      const int index = ready.top().second;
      ready.pop();
      ordered.push_back(index);
      for (const int next : successors[index]) {
        if (--waiting_[at(next)] == 0) ready.emplace(rank(next), next);
      }
    }
    if (ordered.size() != wanted) {
      fail("the updates of {} form a cycle: each needs the old value that another one overwrites",
           names_in_cycle(graph_, successors, waiting_));
    }
    return ordered;
  }

 private:
  void add_edge(int from, int to) {
    edges_.emplace_back(from, to);
    ++waiting_[at(to)];
  }

  void find_edges() {
    const std::vector<int> base = view_bases(graph_);
    std::vector<std::pair<int, int>> reads;  // value, node
    for (int index = 0; index < static_cast<int>(needed_.size()); ++index) {
      if (!needed_[at(index)]) continue;
      for (const int id : graph_.node(index).inputs) reads.emplace_back(base[at(id)], index);
    }
    const Lists readers(graph_.values().size(), reads);
    std::vector<int> updater(graph_.values().size(), -1);
    for (int index = 0; index < static_cast<int>(needed_.size()); ++index) {
      if (!needed_[at(index)]) continue;
      const Node& node = graph_.node(index);
      for (const int id : node.inputs) {
        if (const int producer = graph_.value(id).producer; producer >= 0) add_edge(producer, index);
      }
      for (const Op::Update update : node.op->updates()) {
        const int target = node.inputs[at(update.in)];
        check_update(node, target, updater[at(target)]);
        updater[at(target)] = index;
        is_update_[at(index)] = true;
        for (const int reader : readers[target]) {
          if (reader != index) add_edge(reader, index);
        }
      }
    }
  }

  void check_update(const Node& node, int target, int updater) const {
    const Value& value = graph_.value(target);
    if (value.role != Role::parameter && value.role != Role::state) {
      fail("{} updates '{}', which is {}; only parameters and states can be updated", node.op->name(), value.name,
           name_of(value.role));
    }
    if (updater >= 0) fail("{} '{}' is updated twice in one step", name_of(value.role), value.name);
  }

  // Updates run as soon as they can, for they free a gradient; then nodes that make only a few numbers: what they
  // summarise dies, and what waits for them need not; then everything else in the order of tracing.
  int rank(int index) const {
    if (is_update_[at(index)]) return 0;
    std::int64_t largest = 0;
    for (const int id : graph_.node(index).outputs) largest = std::max(largest, graph_.value(id).type.bytes());
    return largest <= kSummaryBytes ? 1 : 2;
  }

  const Graph& graph_;
  const std::vector<bool>& needed_;
  std::vector<std::pair<int, int>> edges_;
  std::vector<int> waiting_;
  std::vector<bool> is_update_;
};

}  // namespace

void schedule(Graph& graph) {
  const std::vector<bool> needed = needed_nodes(graph, Watching::yes);
  const std::vector<int> order = Order(graph, needed).run();
  std::vector<Node> nodes = graph.take_nodes(), ordered;
  ordered.reserve(order.size());
  for (const int index : order) ordered.push_back(std::move(nodes[at(index)]));
  graph.replace_nodes(std::move(ordered));
}

}  // namespace norma
