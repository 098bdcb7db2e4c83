#include "norma/graph/graph.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "norma/core/error.h"

namespace norma {

namespace {

constexpr int kOutput = -1;  // in the place of a value, where a name is that of an output

}  // namespace

Graph& Wire::graph() const {
  if (graph_ == nullptr) fail("a wire is missing: it was declared but never given a value");
  return *graph_;
}

const Type& Wire::type() const { return graph().value(id_).type; }
const std::string& Wire::name() const { return graph().value(id_).name; }

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input: return "input";
    case Role::parameter: return "parameter";
    case Role::state: return "state";
    case Role::constant: return "constant";
    case Role::computed: return "computed value";
  }
  return "value";
}

const std::shared_ptr<const std::string>& ScopeName::none() {
  static const auto empty = std::make_shared<const std::string>();
  return empty;
}

Graph::Scope::Scope(Graph& graph, ScopeName full)
    : graph_(graph), outer_(std::exchange(graph.scope_, std::move(full))) {}

Graph::Scope::~Scope() { graph_.scope_ = std::move(outer_); }

Graph::Scope Graph::scope(std::string_view name) { return Scope(*this, full_name(name)); }

int Graph::add_value(Value value) {
  values_.push_back(std::move(value));
  return static_cast<int>(values_.size()) - 1;
}

Wire Graph::persistent(std::string_view name, Type type, Role role) {
  if (!is_known(type.dtype)) {
    fail("{} '{}' has an unknown dtype (number {}); expected f32, f64, bf16 or i32", name_of(role), name,
         static_cast<int>(type.dtype));
  }
  if (name.empty()) {
    fail("{} of type {} in scope '{}' has no name; names key random streams and checkpoints", name_of(role), type.str(),
         scope_.str());
  }
  // Entered first, so that its name is looked for once.
  const int id = add_value({.type = type, .role = role, .name = full_name(name)});
  const auto [entry, fresh] = by_name_.try_emplace(value(id).name, id);
  if (fresh) return {this, id};
  values_.pop_back();
  const std::string full(entry->first);
  if (entry->second == kOutput) fail("{} '{}': the name is taken by an output", name_of(role), full);
  const Value& other = value(entry->second);
  fail("two values are named '{}': a {} of type {} and a {} of type {}", full, name_of(other.role), other.type.str(),
       name_of(role), type.str());
}

Wire Graph::input(std::string_view name, Type type) { return persistent(name, type, Role::input); }
Wire Graph::parameter(std::string_view name, Type type) { return persistent(name, type, Role::parameter); }
Wire Graph::state(std::string_view name, Type type) { return persistent(name, type, Role::state); }

Wire Graph::constant_bytes(std::string_view name, Type type, std::span<const std::byte> data) {
  if (static_cast<std::int64_t>(data.size()) != type.bytes()) {
    fail("constant '{}' of type {} needs {} bytes but was given {}", name, type.str(), type.bytes(), data.size());
  }
  const Wire wire = persistent(name, type, Role::constant);
  values_[static_cast<std::size_t>(wire.id())].data =
      std::make_shared<const std::vector<std::byte>>(data.begin(), data.end());
  return wire;
}

Wire Graph::fill(Type type, double number) {
  std::string name = fmt::format("fill({}, {})", type.str(), number);
  if (const auto found = fills_.find(name); found != fills_.end()) return {this, found->second};
  const std::size_t count = static_cast<std::size_t>(type.shape.elements());
  std::vector<std::byte> data(static_cast<std::size_t>(type.bytes()));
  const auto write = [&](auto element) {
    const std::vector<decltype(element)> elements(count, element);
    std::memcpy(data.data(), elements.data(), data.size());
  };
  switch (type.dtype) {
    case DType::f32: write(static_cast<float>(number)); break;
    case DType::f64: write(number); break;
    case DType::bf16: write(BFloat16(static_cast<float>(number))); break;
    case DType::i32: write(static_cast<std::int32_t>(number)); break;
  }
  const int id = add_value({.type = type, .role = Role::constant, .name = name});
  values_[static_cast<std::size_t>(id)].data = std::make_shared<const std::vector<std::byte>>(std::move(data));
  fills_.emplace(std::move(name), id);
  return {this, id};
}

std::vector<Type> Graph::input_types(const Node& node) const {
  std::vector<Type> types;
  types.reserve(node.inputs.size());
  for (const int id : node.inputs) types.push_back(value(id).type);
  return types;
}

std::vector<Type> Graph::output_types(const Node& node) const {
  std::vector<Type> types;
  types.reserve(node.outputs.size());
  for (const int id : node.outputs) types.push_back(value(id).type);
  return types;
}

std::span<const Type> Graph::input_types(const Node& node, std::vector<Type>& room) const {
  room.clear();
  for (const int id : node.inputs) room.push_back(value(id).type);
  return room;
}

std::span<const Type> Graph::output_types(const Node& node, std::vector<Type>& room) const {
  room.clear();
  for (const int id : node.outputs) room.push_back(value(id).type);
  return room;
}

std::string Graph::computed_name(const Node& node, int output) const {
  const std::string_view op = node.op->name();
  std::string name;
  name.reserve(node.scope.str().size() + op.size() + 12);  // once, though it is put together from parts
  if (!node.scope.empty()) name.append(node.scope.str()).push_back('.');
  name += op;
  name += '#';
  name += std::to_string(values_.size());
  if (output > 0) name += '.' + std::to_string(output);
  return name;
}

Wires Graph::apply(OpPtr op, std::span<const Wire> inputs) {
  Node node{.op = std::move(op),
            .inputs = {},
            .outputs = {},
            .scope = scope_,
            .segment = open_segment_,
            .backward = open_backward_};
  const auto describe_inputs = [&] {
    std::string text;
    for (const Wire& wire : inputs) {
      text += (text.empty() ? "" : ", ") + (wire ? wire.name() + " " + wire.type().str() : std::string("no wire"));
    }
    return text;
  };
  const auto where = [&] { return scope_.empty() ? std::string() : "in " + scope_.str() + ": "; };
  for (const Wire& wire : inputs) {
    if (!wire) fail("{}{}({}): a wire is missing", where(), node.op->name(), describe_inputs());
    if (&wire.graph() != this) {
      fail("{}{}({}): wire '{}' belongs to another graph", where(), node.op->name(), describe_inputs(), wire.name());
    }
    node.inputs.push_back(wire.id());
  }
  std::vector<Type> types;
  try {
    types = node.op->infer(input_types(node));
  } catch (const Error& error) {
    fail("{}{}({}): {}", where(), node.op->name(), describe_inputs(), error.what());
  }
  Wires result;
  const int index = static_cast<int>(nodes_.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    const int id = add_value({.type = types[i],
                              .role = Role::computed,
                              .name = computed_name(node, static_cast<int>(i)),
                              .producer = index});
    node.outputs.push_back(id);
    result.emplace_back(this, id);
  }
  nodes_.push_back(std::move(node));
  return result;
}

void Graph::output(std::string_view name, Wire wire) {
  if (!wire || &wire.graph() != this) fail("output '{}': expected a wire of this graph", name);
  if (name.empty()) fail("an output of type {} has no name", wire.type().str());
  const auto [own, fresh] = output_names_.emplace(name);
  const auto [entry, free] = by_name_.try_emplace(*own, kOutput);
  if (!fresh || (!free && entry->second != wire.id())) fail("output '{}': the name is taken", name);
  outputs_.push_back({*own, wire.id()});
}

void Graph::watch(std::string_view name, Wire wire) {
  output(name, wire);
  outputs_.back().watched = true;
}

std::string Graph::full_name(std::string_view name) const {
  const std::string& scope = scope_;
  std::string full;
  full.reserve(scope.size() + 1 + name.size());
  if (!scope.empty()) full.append(scope).push_back('.');
  return full.append(name);
}

Wire Graph::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() || found->second == kOutput ? Wire() : Wire(this, found->second);
}

Wires Graph::parameters() {
  Wires wires;
  for (std::size_t id = 0; id < values_.size(); ++id) {
    if (values_[id].role == Role::parameter) wires.emplace_back(this, static_cast<int>(id));
  }
  return wires;
}

std::deque<Value> Graph::take_values() {
  by_name_.clear();
  return std::exchange(values_, {});
}

std::vector<Node> Graph::take_nodes(std::size_t first) {
  if (first == 0) return std::exchange(nodes_, {});
  const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<Node> taken(std::make_move_iterator(begin), std::make_move_iterator(nodes_.end()));
  nodes_.erase(begin, nodes_.end());
  return taken;
}

void Graph::replace_nodes(std::vector<Node> nodes) {
  nodes_ = std::move(nodes);
  for (Value& value : values_) value.producer = -1;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    for (const int id : nodes_[index].inputs) {
      const Value& input = value(id);
      NORMA_ASSERT(input.role != Role::computed || input.producer >= 0);  // made before it is read
    }
    for (const int id : nodes_[index].outputs) values_[static_cast<std::size_t>(id)].producer = static_cast<int>(index);
  }
}

void Graph::redirect_outputs(const std::vector<int>& stands_for) {
  for (Output& output : outputs_) output.value = stands_for[static_cast<std::size_t>(output.value)];
}

}  // namespace norma
