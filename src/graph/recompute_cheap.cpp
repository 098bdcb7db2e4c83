#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "graph/index.h"
#include "graph/recompute.h"

namespace norma {
namespace {

// That an op may cost, for each byte that then need not stay. Products into many channels pass, those into few do not.
constexpr double kMostOperations = 512;
// Times what has to stay for it and would not otherwise: a narrow copy of a bias may, an activation may not.
constexpr std::int64_t kLeastGain = 32;

// Nodes between a second edition and its first reader: about half a layer of a transformer. A device with several lanes
// makes it beside them.
constexpr std::size_t kAhead = 8;

class CheapRecomputation {
 public:
  explicit CheapRecomputation(Graph& graph)
      : graph_(graph),
        late_(graph.values().size(), false),
        output_(graph.values().size(), false),
        dropped_(graph.values().size(), false) {
    find_late_readers();
    for (const Node& node : graph.nodes()) consider(node);
  }

  void run() {
    const std::vector<Node> nodes = graph_.nodes();  // a copy: cloning adds values
    const auto first_backward =
        std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return node.backward; });
    std::vector<std::vector<Node>> ahead(nodes.size());  // by node: what is made in front of it
    std::vector<Node> result;
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      result.push_back(nodes[index]);
      if (!nodes[index].backward) continue;
      const auto earliest = static_cast<std::size_t>(first_backward - nodes.begin());
      std::vector<Node>& made = ahead[std::max(earliest, index - std::min(index, kAhead))];
      for (int& id : result.back().inputs) id = edition_for_backward(nodes, id, made);
    }
    std::vector<Node> merged;
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      std::move(ahead[index].begin(), ahead[index].end(), std::back_inserter(merged));
      merged.push_back(std::move(result[index]));
    }
    graph_.replace_nodes(std::move(merged));
  }

 private:
  bool is_view(const Node& node) const { return node.op->view_offset(graph_.input_types(node)) >= 0; }
  std::int64_t bytes(int id) const { return graph_.value(id).type.bytes(); }
  bool is_dropped(int id) const { return at(id) < dropped_.size() && dropped_[at(id)]; }

  // A view's base lives as long as the view.
  void find_late_readers() {
    for (const Output& output : graph_.outputs()) output_[at(output.value)] = true;
    for (int index = static_cast<int>(graph_.nodes().size()) - 1; index >= 0; --index) {
      const Node& node = graph_.node(index);
      last_segment_ = std::max(last_segment_, node.segment);
      if (node.backward) {
        for (const int id : node.inputs) late_[at(id)] = true;
      } else if (is_view(node)) {
        late_[at(node.inputs[0])] = late_[at(node.inputs[0])] || late_[at(node.outputs[0])];
        output_[at(node.inputs[0])] = output_[at(node.inputs[0])] || output_[at(node.outputs[0])];
      }
    }
  }

  // The last segment's backward pass follows at once.
  void consider(const Node& node) {
    if (node.backward || node.segment < 0 || node.segment == last_segment_ || !node.op->updates().empty()) return;
    if (is_view(node)) {  // it is where its base is
      dropped_[at(node.outputs[0])] = dropped_[at(node.inputs[0])] && !output_[at(node.outputs[0])];
      return;
    }
    std::int64_t more = 0, saved = 0;
    for (const int id : node.inputs) {
      if (!can_be_read_again(id, node.segment)) return;
      if (!stays(id)) more += bytes(id);
    }
    for (const int id : node.outputs) saved += late_[at(id)] && !output_[at(id)] ? bytes(id) : 0;
    const double operations = node.op->cost(graph_.input_types(node), graph_.output_types(node)).flops;
    if (saved < kLeastGain * more || operations > kMostOperations * static_cast<double>(saved)) return;
    for (const int id : node.outputs) dropped_[at(id)] = late_[at(id)] && !output_[at(id)];
    for (const int id : node.inputs) late_[at(id)] = true;
  }

  // A chain of second editions over segments would make all of them live at once.
  bool can_be_read_again(int id, int segment) const {
    const int producer = graph_.value(id).producer;
    return !dropped_[at(id)] || (producer >= 0 && graph_.node(producer).segment == segment);
  }
  bool stays(int id) const {
    const Value& value = graph_.value(id);
    if (value.role != Role::computed || dropped_[at(id)] || late_[at(id)] || output_[at(id)]) return true;
    return value.producer >= 0 && is_view(graph_.node(value.producer)) && stays(graph_.node(value.producer).inputs[0]);
  }

  // The value itself, or its second edition, made before the first backward node that reads it.
  int edition_for_backward(const std::vector<Node>& nodes, int id, std::vector<Node>& result) {
    if (!is_dropped(id)) return id;
    if (const auto made = clones_.find(id); made != clones_.end()) return made->second;
    Node clone = nodes[at(graph_.value(id).producer)];
    clone.backward = clone.again = true;
    clone.segment = -1;
    for (int& input : clone.inputs) input = edition_for_backward(nodes, input, result);
    for (int& output : clone.outputs) output = add_edition(graph_, output, clones_);
    result.push_back(std::move(clone));
    return clones_.at(id);
  }

  Graph& graph_;
  std::vector<bool> late_, output_;  // by value: whether a backward node reads it, whether it is an output
  std::vector<bool> dropped_;        // by value
  int last_segment_ = -1;
  std::unordered_map<int, int> clones_;
};

}  // namespace

void recompute_cheap_values(Graph& graph) { CheapRecomputation(graph).run(); }

}  // namespace norma
