#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "graph/layered.h"
#include "graph/print_names.h"
#include "norma/core/error.h"
#include "norma/core/xml.h"
#include "norma/graph/print.h"

namespace norma {
namespace {

constexpr double kCharacter = 6.6, kLine = 15, kPadding = 8, kMargin = 24;
constexpr int kLongestEdge = 14;  // ranks; what is longer becomes a name on both sides

constexpr const char* kStyle = R"(<style>
text { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1d2733; }
.back { fill: #ffffff; } .title { font-weight: bold; } .small { fill: #5b6b7c; }
.box { fill: #eef3f8; stroke: #52708f; } .backward { fill: #fbf1e8; stroke: #b0793f; stroke-dasharray: 5 3; }
.end { fill: #ffffff; stroke: #52708f; } .edge { fill: none; stroke: #7b8b9b; stroke-width: 1.2; }
.head { fill: #7b8b9b; } .group { fill: #52708f; fill-opacity: 0.05; stroke: #52708f; stroke-opacity: 0.25; }
@media (prefers-color-scheme: dark) {
  text { fill: #e2e8ee; } .back { fill: #14191f; } .small { fill: #93a3b3; }
  .box { fill: #202b37; stroke: #7fa3c7; } .backward { fill: #33271b; stroke: #d19a5b; }
  .end { fill: #14191f; stroke: #7fa3c7; } .edge { stroke: #8494a4; } .head { fill: #8494a4; }
  .group { fill: #7fa3c7; stroke: #7fa3c7; }
}
</style>
)";

// The row of each node: below what it reads, and what depends on the backward pass below all that does not. A node
// whose inputs are early moves down to its first reader. 0: nobody needs it, and it will not be drawn.
std::vector<int> node_ranks(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<int> rank(nodes.size(), 1);  // inputs stand above
  std::vector<bool> late(nodes.size(), false);
  int first_late = 1;
  for (const bool pass : {false, true}) {
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      if (!pass) late[index] = nodes[index].backward;
      if (pass && late[index]) rank[index] = first_late;
      for (const int id : nodes[index].inputs) {
        const int producer = graph.value(id).producer;
        if (producer < 0) continue;
        if (late[static_cast<std::size_t>(producer)]) late[index] = true;
        rank[index] = std::max(rank[index], rank[static_cast<std::size_t>(producer)] + 1);
      }
      if (!pass && !late[index]) first_late = std::max(first_late, rank[index] + 1);
    }
  }
  std::vector<int> first_reader(nodes.size(), 0);  // its rank; 0: nobody reads
  std::vector<bool> needed(nodes.size(), false);
  for (const Output& output : graph.outputs()) {
    const int producer = graph.value(output.value).producer;
    if (producer >= 0) needed[static_cast<std::size_t>(producer)] = true;
  }
  for (std::size_t index = nodes.size(); index-- > 0;) {
    if (!needed[index] && nodes[index].op->updates().empty()) {
      rank[index] = 0;
      continue;
    }
    if (first_reader[index] > 0) rank[index] = std::max(rank[index], first_reader[index] - 1);
    for (const int id : nodes[index].inputs) {
      const int producer = graph.value(id).producer;
      if (producer < 0) continue;
      needed[static_cast<std::size_t>(producer)] = true;
      if (late[static_cast<std::size_t>(producer)] != late[index]) continue;
      int& first = first_reader[static_cast<std::size_t>(producer)];
      first = first == 0 ? rank[index] : std::min(first, rank[index]);
    }
  }
  return rank;
}

// What one box says and how it looks.
struct Face {
  std::string title = {};
  std::vector<std::string> lines = {};
  std::string group = {};
  const char* style = "box";
  bool round = false;
};

class Drawing {
 public:
  Drawing(const Graph& graph, const PrintOptions& options) : graph_(graph) {
    const std::vector<int> ranks = node_ranks(graph);
    for (std::size_t index = 0; index < ranks.size(); ++index) {
      const bool wanted = ranks[index] > 0 && (!graph.nodes()[index].backward || options.backward);
      if (wanted) add_node(static_cast<int>(index), ranks[index]);
    }
    for (const auto& [id, readers] : input_readers_) add_input(id, readers);
    for (const Output& output : graph.outputs()) add_output(output);
    add_results();
    for (std::size_t i = 0; i < faces_.size(); ++i) size_box(i);
  }

  std::string draw() {
    const Extent extent = place_boxes(boxes_, edges_);
    std::string body;
    double width = extent.width + 2 * kMargin, height = extent.height + 2 * kMargin;
    for (const auto& [label, members] : groups()) body += draw_group(label, members, width);
    for (const Edge& edge : edges_) body += draw_edge(edge);
    for (std::size_t i = 0; i < boxes_.size(); ++i) body += draw_box(boxes_[i], faces_[i]);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
               "{1:.0f}\">\n",
               width, height) +
           kStyle + "<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n" +
           fmt::format("<g transform=\"translate({0:.0f} {0:.0f})\">\n", kMargin) + body + "</g>\n</svg>\n";
  }

 private:
  int add_box(int rank, Face face) {
    boxes_.push_back({.rank = rank});
    faces_.push_back(std::move(face));
    return static_cast<int>(boxes_.size()) - 1;
  }

  int rank_of(int box) const { return boxes_[static_cast<std::size_t>(box)].rank; }

  void connect(int from, int to) {
    if (connected_.emplace(from, to).second) edges_.push_back({.from = from, .to = to});
  }

  void add_node(int index, int rank) {
    const Node& node = graph_.node(index);
    Face face{.title = op_label(node), .group = group_label(node), .style = node.backward ? "backward" : "box"};
    const int box = static_cast<int>(boxes_.size());
    for (const int id : node.inputs) {
      const Value& value = graph_.value(id);
      const auto found = nodes_.find(value.producer);
      if (value.role == Role::input) {
        input_readers_[id].push_back(box);
      } else if (found != nodes_.end() && rank - rank_of(found->second) <= kLongestEdge) {
        connect(found->second, box);
      } else {
        if (found != nodes_.end()) named_.insert(id);
        face.lines.push_back(mention(id));
      }
    }
    add_box(rank, std::move(face));
    nodes_.emplace(index, box);
  }

  // A value in the box of its reader. A number is short: drawings need not be exact.
  std::string mention(int id) const {
    const Value& value = graph_.value(id);
    const std::string name = short_name(graph_, id);
    if (value.role != Role::constant || value.type.shape.elements() != 1) return name + " " + value.type.str();
    return name == value.name ? name : fmt::format("{:.6g}", std::stod(name));
  }

  // The last line of a node's box: what it makes, by name where another box mentions it.
  void add_results() {
    for (const auto& [index, box] : nodes_) {
      std::string text;
      for (const int id : graph_.node(index).outputs) {
        text += (text.empty() ? "-> " : ", ") + (named_.contains(id) ? short_name(graph_, id) + " " : "") +
                graph_.value(id).type.str();
      }
      faces_[static_cast<std::size_t>(box)].lines.push_back(text);
    }
  }

  // Just above the first box that reads it.
  void add_input(int id, const std::vector<int>& readers) {
    const Value& value = graph_.value(id);
    int rank = rank_of(readers[0]) - 1;
    for (const int reader : readers) rank = std::min(rank, rank_of(reader) - 1);
    const int box = add_box(rank, {.title = value.name, .lines = {value.type.str()}, .style = "end", .round = true});
    for (const int reader : readers) {
      if (rank_of(reader) - rank <= kLongestEdge) {
        connect(box, reader);
      } else {
        faces_[static_cast<std::size_t>(reader)].lines.push_back(value.name);
      }
    }
  }

  void add_output(const Output& output) {
    const Value& value = graph_.value(output.value);
    const auto found = nodes_.find(value.producer);
    if (found == nodes_.end()) return;
    connect(found->second, add_box(rank_of(found->second) + 1, {.title = output.name, .style = "end", .round = true}));
  }

  void size_box(std::size_t i) {
    std::size_t longest = faces_[i].title.size();
    for (const std::string& line : faces_[i].lines) longest = std::max(longest, line.size());
    boxes_[i].width = static_cast<double>(longest) * kCharacter + 2 * kPadding;
    boxes_[i].height = static_cast<double>(1 + faces_[i].lines.size()) * kLine + kPadding;
  }

  std::map<std::string, std::vector<const Box*>> groups() const {
    std::map<std::string, std::vector<const Box*>> result;
    for (std::size_t i = 0; i < faces_.size(); ++i) {
      if (!faces_[i].group.empty()) result[faces_[i].group].push_back(&boxes_[i]);
    }
    return result;
  }

  static std::string draw_group(const std::string& label, const std::vector<const Box*>& members, double& width) {
    double left = members[0]->x, right = left, top = members[0]->y, bottom = top;
    for (const Box* box : members) {
      left = std::min(left, box->x - box->width / 2);
      right = std::max(right, box->x + box->width / 2);
      top = std::min(top, box->y);
      bottom = std::max(bottom, box->y + box->height);
    }
    constexpr double kAround = 10;
    right = std::max(right, left + static_cast<double>(label.size()) * kCharacter);
    width = std::max(width, right + kAround + 2 * kMargin);
    return fmt::format(
        "<rect class=\"group\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"8\"/>\n"
        "<text class=\"small\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        left - kAround, top - kAround - 6, right - left + 2 * kAround, bottom - top + 2 * kAround + 6, left - 4,
        top - kAround + 6, xml_text(label));
  }

  static std::string draw_edge(const Edge& edge) {
    std::string path = fmt::format("M{:.1f} {:.1f}", edge.points[0].first, edge.points[0].second);
    for (std::size_t i = 1; i < edge.points.size(); ++i) {
      const auto [x0, y0] = edge.points[i - 1];
      auto [x1, y1] = edge.points[i];
      if (i + 1 == edge.points.size()) y1 -= 5;  // room for the head
      const double middle = (y0 + y1) / 2;
      path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x0, middle, x1, middle, x1, y1);
    }
    const auto [x, y] = edge.points.back();
    return fmt::format("<path class=\"edge\" d=\"{}\"/>\n<path class=\"head\" d=\"M{:.1f} {:.1f} l-4 -7 h8 z\"/>\n",
                       path, x, y);
  }

  static std::string draw_box(const Box& box, const Face& face) {
    std::string text =
        fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.0f}\"/>\n",
                    face.style, box.x - box.width / 2, box.y, box.width, box.height, face.round ? box.height / 2 : 4);
    double y = box.y + kLine;
    text += fmt::format("<text class=\"title\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", box.x, y,
                        xml_text(face.title));
    for (const std::string& line : face.lines) {
      y += kLine;
      text += fmt::format("<text class=\"small\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", box.x,
                          y, xml_text(line));
    }
    return text;
  }

  const Graph& graph_;
  std::vector<Box> boxes_;
  std::vector<Face> faces_;
  std::vector<Edge> edges_;
  std::map<int, int> nodes_;                       // node -> box
  std::map<int, std::vector<int>> input_readers_;  // value -> boxes
  std::set<std::pair<int, int>> connected_;
  std::set<int> named_;  // values mentioned by name in another box
};

}  // namespace

std::string print_svg(const Graph& graph, const PrintOptions& options) { return Drawing(graph, options).draw(); }

}  // namespace norma
