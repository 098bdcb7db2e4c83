#include "norma/graph/print.h"

#include <map>
#include <set>
#include <vector>

#include "graph/print_names.h"
#include "norma/core/error.h"

namespace norma {

std::string short_name(const Graph& graph, int id) {
  const Value& value = graph.value(id);
  if (value.role == Role::computed) {
    const std::string scope = value.producer < 0 ? "" : graph.node(value.producer).scope.str();
    return !scope.empty() && value.name.starts_with(scope + ".") ? value.name.substr(scope.size() + 1) : value.name;
  }
  // Graph::fill names its values "fill(type, number)".
  const std::string prefix = "fill(" + value.type.str() + ", ";
  if (value.role == Role::constant && value.name.starts_with(prefix))
    return value.name.substr(prefix.size(), value.name.size() - prefix.size() - 1);
  return value.name;
}

std::string op_label(const Node& node) {
  const std::string attributes = node.op->attributes();
  return std::string(node.op->name()) + (attributes.empty() ? "" : "(" + attributes + ")");
}

std::string group_label(const Node& node) {
  if (!node.backward) return node.scope;
  return node.scope.empty() ? "backward" : node.scope.str() + ", backward";
}

namespace {

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// Persistent values that a printed node reads, in order of declaration.
std::set<int> values_read(const Graph& graph, const PrintOptions& options) {
  std::set<int> read;
  for (const Node& node : graph.nodes()) {
    if (node.backward && !options.backward) continue;
    for (const int id : node.inputs) {
      if (graph.value(id).role != Role::computed) read.insert(id);
    }
  }
  return read;
}

bool is_fill(const Graph& graph, int id) { return short_name(graph, id) != graph.value(id).name; }

// An output whose producer is not printed has nothing to point at.
bool printed(const Graph& graph, const Output& output, const PrintOptions& options) {
  const Value& value = graph.value(output.value);
  return value.role != Role::computed ||
         (value.producer >= 0 && (options.backward || !graph.node(value.producer).backward));
}

std::string escape_dot(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string print_text(const Graph& graph, const PrintOptions& options) {
  std::string text;
  const std::set<int> read = values_read(graph, options);
  for (const Role role : {Role::input, Role::parameter, Role::state, Role::constant}) {
    for (const int id : read) {
      const Value& value = graph.value(id);
      if (value.role != role || is_fill(graph, id)) continue;
      text += fmt::format("{} {} {}\n", name_of(role), value.name, value.type.str());
    }
  }
  std::string group;
  for (const Node& node : graph.nodes()) {
    if (node.backward && !options.backward) continue;
    if (group_label(node) != group) {
      group = group_label(node);
      text += "\n" + (group.empty() ? "top" : group) + ":\n";
    } else if (&node == &graph.nodes().front()) {
      text += "\n";
    }
    std::vector<std::string> outputs, inputs;
    for (const int id : node.outputs) outputs.push_back(short_name(graph, id) + " " + graph.value(id).type.str());
    for (const int id : node.inputs) inputs.push_back(short_name(graph, id));
    text += fmt::format("  {} = {} {}\n", join(outputs, ", "), op_label(node), join(inputs, ", "));
  }
  if (!graph.outputs().empty()) text += "\n";
  for (const Output& output : graph.outputs()) {
    if (printed(graph, output, options))
      text += fmt::format("output {} = {}\n", output.name, short_name(graph, output.value));
  }
  return text;
}

std::string print_dot(const Graph& graph, const PrintOptions& options) {
  std::string text = "digraph norma {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n";
  text += "  edge [fontname=\"monospace\", fontsize=8];\n";
  for (const int id : values_read(graph, options)) {
    const Value& value = graph.value(id);
    const char* shape = value.role == Role::input ? "ellipse" : (value.role == Role::constant ? "plaintext" : "note");
    text += fmt::format("  v{} [shape={}, label=\"{}\\n{}\"];\n", id, shape, escape_dot(short_name(graph, id)),
                        value.type.str());
  }
  std::map<std::string, std::vector<int>> groups;
  for (std::size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    if (!node.backward || options.backward) groups[group_label(node)].push_back(static_cast<int>(index));
  }
  int cluster = 0;
  for (const auto& [label, members] : groups) {
    const char* indent = label.empty() ? "  " : "    ";
    if (!label.empty())
      text += fmt::format("  subgraph cluster{} {{\n    label=\"{}\";\n", cluster++, escape_dot(label));
    for (const int index : members) {
      text += fmt::format("{}n{} [label=\"{}\"{}];\n", indent, index, escape_dot(op_label(graph.node(index))),
                          graph.node(index).backward ? ", style=dashed" : "");
    }
    if (!label.empty()) text += "  }\n";
  }
  const auto source = [&](int id) {
    const int producer = graph.value(id).producer;
    return producer < 0 ? fmt::format("v{}", id) : fmt::format("n{}", producer);
  };
  for (std::size_t index = 0; index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    if (node.backward && !options.backward) continue;
    for (const int id : node.inputs) {
      const Value& value = graph.value(id);
      const std::string label = value.role == Role::computed ? fmt::format(" [label=\"{}\"]", value.type.str()) : "";
      text += fmt::format("  {} -> n{}{};\n", source(id), index, label);
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Output& output = graph.outputs()[i];
    if (!printed(graph, output, options)) continue;
    text += fmt::format("  o{} [shape=ellipse, style=bold, label=\"{}\"];\n  {} -> o{};\n", i, escape_dot(output.name),
                        source(output.value), i);
  }
  return text + "}\n";
}

}  // namespace norma
