#include "lab/analyses/contribution.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

// The wires of a formula from the branch on, each split into what comes from the branch and the rest.
class Splitter {
 public:
  Splitter(const Model& model, const SublayerSite& site) : graph_(site.branch.graph()) {
    for (const SublayerSite& other : model.sites) {
      if (other.stream_out == site.stream_out) split_[other.branch.id()] = {};
    }
    split_[site.branch.id()] = {.kept = {}, .added = site.branch};
    first_ = graph_.value(site.branch.id()).producer;
    for (const auto& [branch, unused] : split_) first_ = std::min(first_, graph_.value(branch).producer);
    last_ = graph_.value(site.stream_out.id()).producer;
    need(site.stream_out.id());
  }

  std::optional<Contribution> run() {
    std::optional<Contribution> found;
    for (int index = first_ + 1; index <= last_; ++index) {
      const Node node = graph_.node(index);  // a copy: splitting appends nodes
      const int out = node.outputs[0];
      if (!needed_.contains(out) || split_.contains(out)) continue;
      if (std::ranges::none_of(node.inputs, [&](int in) { return split_.contains(in); })) continue;
      const std::optional<Contribution> parts = split(node);
      if (!parts) continue;
      split_[out] = *parts;
      if (parts->kept && parts->added) found = *parts;
    }
    return found;
  }

 private:
  void need(int out) {
    needed_.insert(out);
    for (int index = last_; index > first_; --index) {
      const Node& node = graph_.node(index);
      if (std::ranges::none_of(node.outputs, [&](int one) { return needed_.contains(one); })) continue;
      needed_.insert(node.inputs.begin(), node.inputs.end());
    }
  }

  std::optional<Contribution> split(const Node& node) {
    const std::string_view op = node.op->name();
    if (op == "sum" || op == "add" || op == "sub") return sum_of(node);
    const auto mixed = [&](int in) { return split_.contains(in) && split_.at(in).kept; };
    if (std::ranges::any_of(node.inputs, mixed)) {
      if (!is_linear(node)) return std::nullopt;
      return through(node);
    }
    if (op == "concat") return std::nullopt;
    const auto from_branch = [&](int in) { return split_.contains(in) && split_.at(in).added; };
    return Contribution{
        .kept = {}, .added = std::ranges::any_of(node.inputs, from_branch) ? Wire(&graph_, node.outputs[0]) : Wire()};
  }

  Contribution sum_of(const Node& node) {
    Contribution total;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool minus = i == 1 && node.op->name() == "sub";
      const auto include = [&](Wire& sum, Wire term) {
        if (!term) return;
        if (!sum) {
          sum = minus ? -term : term;
        } else {
          sum = minus ? sum - term : sum + term;
        }
      };
      const auto known = split_.find(node.inputs[i]);
      include(total.kept, known == split_.end() ? Wire(&graph_, node.inputs[i]) : known->second.kept);
      include(total.added, known == split_.end() ? Wire() : known->second.added);
    }
    return total;
  }

  // In the one input that is split.
  bool is_linear(const Node& node) const {
    constexpr std::array<std::string_view, 11> kLinear = {"mul",     "div",    "neg",         "stop_gradient",
                                                          "reshape", "slice",  "permute",     "cast",
                                                          "sum_to",  "matmul", "broadcast_to"};
    if (std::ranges::find(kLinear, node.op->name()) == kLinear.end()) return false;
    if (std::ranges::count_if(node.inputs, [&](int in) { return split_.contains(in); }) != 1) return false;
    return node.op->name() != "div" || split_.contains(node.inputs[0]);
  }

  Contribution through(const Node& node) {
    const auto of = [&](Wire Contribution::*part) {
      Wires in;
      for (const int input : node.inputs) {
        const auto known = split_.find(input);
        in.push_back(known == split_.end() ? Wire(&graph_, input) : known->second.*part);
      }
      return std::ranges::all_of(in, [](Wire wire) { return static_cast<bool>(wire); }) ? graph_.apply(node.op, in)[0]
                                                                                        : Wire();
    };
    return {.kept = of(&Contribution::kept), .added = of(&Contribution::added)};
  }

  Graph& graph_;
  int first_ = 0, last_ = 0;  // nodes
  std::unordered_map<int, Contribution> split_;
  std::set<int> needed_;  // values that the stream after the sublayer is made of
};

}  // namespace

std::optional<Contribution> contribution_of(const Model& model, const SublayerSite& site) {
  return Splitter(model, site).run();
}

Wire stream_before(const SublayerSite& site, const Contribution& parts) {
  const Shape& after = site.stream_out.shape();
  if (site.stream_in.shape() == after) return site.stream_in;
  if (parts.kept.shape() != after)
    fail("'{}' turns a stream {} into {} and keeps nothing of that shape: there is no angle between them", site.name,
         site.stream_in.shape().str(), after.str());
  return parts.kept;
}

Wire stream_before(const Model& model, const SublayerSite& site) {
  if (site.stream_in.shape() == site.stream_out.shape()) return site.stream_in;
  return stream_before(site, contribution_of(model, site).value_or(Contribution{site.stream_in, site.branch}));
}

}  // namespace norma
