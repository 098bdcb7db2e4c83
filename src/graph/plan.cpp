#include "norma/graph/plan.h"

#include <algorithm>

#include "graph/index.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {

const Slot& Plan::slot(std::string_view name) const {
  const auto found = slots_.find(name);
  if (found != slots_.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& entry : slots_) names.emplace_back(entry.first);
  std::sort(names.begin(), names.end());
  fail("the plan has no tensor named '{}'{}", name, did_you_mean(name, names));
}

std::vector<std::string> Plan::slot_names(Role role) const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) {
    if (slot.role == role) names.emplace_back(name);
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
    total.products += cost.products;
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

}  // namespace norma
