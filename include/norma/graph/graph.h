// The graph that tracing builds: values, the nodes that make them, names, scopes and segments.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "norma/graph/ids.h"
#include "norma/graph/op.h"
#include "norma/graph/wire.h"

namespace norma {

// Where a value comes from. Everything but `computed` keeps its memory for the life of the plan.
enum class Role { input, parameter, state, constant, computed };

std::string_view name_of(Role role);

struct Value {
  Type type = {};
  Role role = Role::computed;
  std::string name = {};                                         // unique for persistent values
  int producer = -1;                                             // node index, -1 for persistent values
  std::shared_ptr<const std::vector<std::byte>> data = nullptr;  // constants only
};

// A name that many nodes share: a copy is one more reference to it.
class ScopeName {
 public:
  ScopeName() : text_(none()) {}
  ScopeName(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}  // NOLINT: it is one

  ScopeName(const char* text) : ScopeName(std::string(text)) {}  // NOLINT

  const std::string& str() const { return *text_; }
  operator const std::string&() const { return *text_; }  // NOLINT: it is one
  bool empty() const { return text_->empty(); }
  bool operator==(const ScopeName& other) const { return text_ == other.text_ || *text_ == *other.text_; }

 private:
  static const std::shared_ptr<const std::string>& none();

  std::shared_ptr<const std::string> text_;
};

struct Node {
  OpPtr op = nullptr;
  Ids inputs = {};        // value ids
  Ids outputs = {};       // value ids
  ScopeName scope = {};   // "layers.3.attn"
  int segment = -1;       // recomputation segment; -1 = none
  bool backward = false;  // appended by differentiation
  bool again = false;     // a second edition, made some time before it is read
};

struct Output {
  std::string name;
  int value;
  bool watched = false;  // computed only by runs that watch
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;  // wires point at their graph
  Graph& operator=(const Graph&) = delete;

  // Persistent values. Names are prefixed by the open scopes; an empty or repeated name is an Error.
  Wire input(std::string_view name, Type type);
  Wire parameter(std::string_view name, Type type);
  Wire state(std::string_view name, Type type);
  template <typename T>
  Wire constant(std::string_view name, Shape shape, std::span<const T> values) {
    return constant_bytes(name, Type{shape, dtype_of<T>()}, std::as_bytes(values));
  }
  Wire constant_bytes(std::string_view name, Type type, std::span<const std::byte> data);
  // A constant filled with one number, of any floating type. Equal fills share one value.
  Wire fill(Type type, double number);

  // Applies an op; throws Error that names the scope, the op and every input when the shapes do not fit.
  Wires apply(OpPtr op, std::span<const Wire> inputs);

  // Makes a wire readable after a run under this name; its memory is kept to the end of the step.
  void output(std::string_view name, Wire wire);
  // An output that is computed only by runs that watch: what nothing else needs is left out of the others.
  void watch(std::string_view name, Wire wire);

  // A residual stream begins here: where plans are in mixed precision, it is read as bf16 from here on.
  void narrow_stream(Wire begin) { narrow_streams_.push_back(begin.id()); }
  const std::vector<int>& narrow_streams() const { return narrow_streams_; }

  // Names opened for the life of the returned guard.
  class Scope {
   public:
    Scope(Graph& graph, ScopeName full);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    ScopeName outer_;
  };
  [[nodiscard]] Scope scope(std::string_view name);                                       // inside the open scope
  [[nodiscard]] Scope scope_at(ScopeName full) { return Scope(*this, std::move(full)); }  // from the root

  // Nodes appended during the guard's life belong to one recomputation segment (usually one layer).
  class Segment {
   public:
    explicit Segment(Graph& graph) : graph_(graph), outer_(graph.open_segment_) {
      graph.open_segment_ = graph.segments_++;
    }
    ~Segment() { graph_.open_segment_ = outer_; }
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

   private:
    Graph& graph_;
    int outer_;
  };
  [[nodiscard]] Segment segment() { return Segment(*this); }

  // Nodes appended during the guard's life are marked as backward.
  class Backward {
   public:
    explicit Backward(Graph& graph) : graph_(graph), outer_(std::exchange(graph.open_backward_, true)) {}
    ~Backward() { graph_.open_backward_ = outer_; }
    Backward(const Backward&) = delete;
    Backward& operator=(const Backward&) = delete;

   private:
    Graph& graph_;
    bool outer_;
  };

  const std::deque<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  int segments() const { return segments_; }
  const Value& value(int id) const { return values_[static_cast<std::size_t>(id)]; }
  const Node& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  std::vector<Type> input_types(const Node& node) const;
  std::vector<Type> output_types(const Node& node) const;
  // The same in memory that is used again; valid until the next call with that `room`.
  std::span<const Type> input_types(const Node& node, std::vector<Type>& room) const;
  std::span<const Type> output_types(const Node& node, std::vector<Type>& room) const;
  // Where a view of the node's first input begins, in bytes; negative: the node is none.
  std::int64_t view_offset(const Node& node) const {
    return node.op->views() ? node.op->view_offset(input_types(node)) : -1;
  }
  std::string full_name(std::string_view name) const;  // inside the open scopes
  // Persistent value by full name; an empty wire when there is none.
  Wire find(std::string_view name);
  Wires parameters();

  // For graph transforms: the node list, from some node on, is taken out and put back changed. Producers are
  // recomputed; the order must be executable.
  std::vector<Node> take_nodes(std::size_t first = 0);
  void replace_nodes(std::vector<Node> nodes);
  // For whoever takes everything; wires mean nothing afterwards.
  std::deque<Value> take_values();
  void redirect_outputs(const std::vector<int>& stands_for);  // by value: the one that is read in its place
  int add_value(Value value);
  void set_dtype(int id, DType dtype) { values_[static_cast<std::size_t>(id)].type.dtype = dtype; }
  std::string computed_name(const Node& node, int output) const;

 private:
  friend class Wire;
  Wire persistent(std::string_view name, Type type, Role role);

  std::deque<Value> values_;  // a deque: `f(y * z, x.shape())` holds a reference into it while values are added
  std::vector<Node> nodes_;
  std::vector<Output> outputs_;
  std::vector<int> narrow_streams_;
  std::unordered_set<std::string> output_names_;
  std::unordered_map<std::string_view, int> by_name_;  // names as the values hold them
  std::map<std::string, int> fills_;
  ScopeName scope_;
  int segments_ = 0;
  int open_segment_ = -1;
  bool open_backward_ = false;
};

}  // namespace norma
