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

std::vector<Node> drop_unread(const Graph& graph) {
  const std::vector<bool> needed = needed_nodes(graph, Watching::yes);
  std::vector<Node> kept;
  for (std::size_t index = 0; index < needed.size(); ++index) {
    if (needed[index]) kept.push_back(graph.nodes()[index]);
  }
  return kept;
}

// The persistent values that nodes in a cycle of updates write. What still waits is the cycles and whatever comes after
// them; the latter is peeled off from its end.
std::string names_in_cycle(const Graph& graph, const std::vector<std::vector<int>>& successors,
                           const std::vector<int>& waiting) {
  std::vector<bool> stuck(waiting.size());
  for (std::size_t index = 0; index < waiting.size(); ++index) stuck[index] = waiting[index] > 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t index = 0; index < stuck.size(); ++index) {
      const bool leads_on =
          std::any_of(successors[index].begin(), successors[index].end(), [&](int next) { return stuck[at(next)]; });
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
    if (node.op->view_offset(graph.input_types(node)) >= 0) base[at(node.outputs[0])] = base[at(node.inputs[0])];
  }
  return base;
}

constexpr std::int64_t kSummaryBytes = 256;

std::vector<bool> needed_nodes(const Graph& graph, Watching watching) {
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
  return needed;
}

void schedule(Graph& graph) {
  graph.replace_nodes(drop_unread(graph));
  const std::vector<Node>& nodes = graph.nodes();
  const std::vector<int> base = view_bases(graph);

  std::vector<std::vector<int>> readers(graph.values().size());
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    for (const int id : nodes[index].inputs) readers[at(base[at(id)])].push_back(static_cast<int>(index));
  }

  // Edges: producer -> reader, and reader of an old value -> its update.
  std::vector<std::vector<int>> successors(nodes.size());
  std::vector<int> waiting(nodes.size(), 0);
  std::vector<bool> is_update(nodes.size(), false);
  std::vector<int> updater(graph.values().size(), -1);
  const auto add_edge = [&](int from, int to) {
    successors[at(from)].push_back(to);
    ++waiting[at(to)];
  };
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    const int self = static_cast<int>(index);
    for (const int id : node.inputs) {
      if (const int producer = graph.value(id).producer; producer >= 0) add_edge(producer, self);
    }
    for (const Op::Update update : node.op->updates()) {
      const int target = node.inputs[at(update.in)];
      const Value& value = graph.value(target);
      if (value.role != Role::parameter && value.role != Role::state) {
        fail("{} updates '{}', which is {}; only parameters and states can be updated", node.op->name(), value.name,
             name_of(value.role));
      }
      if (updater[at(target)] >= 0) fail("{} '{}' is updated twice in one step", name_of(value.role), value.name);
      updater[at(target)] = self;
      is_update[index] = true;
      for (const int reader : readers[at(target)]) {
        if (reader != self) add_edge(reader, self);
      }
    }
  }

  // Updates run as soon as they can, for they free a gradient; then nodes that make only a few numbers: what they
  // summarise dies, and what waits for them need not; then everything else in the order of tracing.
  const auto rank = [&](std::size_t index) {
    if (is_update[index]) return 0;
    std::int64_t out = 0;
    for (const Type& type : graph.output_types(nodes[index])) out += type.bytes();
    return out <= kSummaryBytes ? 1 : 2;
  };
  using Entry = std::pair<int, int>;  // rank, index
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int index) { ready.emplace(rank(at(index)), index); };
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (waiting[index] == 0) push(static_cast<int>(index));
  }
  std::vector<Node> ordered;
  ordered.reserve(nodes.size());
  while (!ready.empty()) {
    const int index = ready.top().second;
    ready.pop();
    ordered.push_back(nodes[at(index)]);
    for (const int next : successors[at(index)]) {
      if (--waiting[at(next)] == 0) push(next);
    }
  }
  if (ordered.size() != nodes.size()) {
    fail("the updates of {} form a cycle: each needs the old value that another one overwrites",
         names_in_cycle(graph, successors, waiting));
  }
  graph.replace_nodes(std::move(ordered));
}

}  // namespace norma
