#include "models/stack_check.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

NotBuiltError no_formula(const Scheme& scheme, const BranchKind& kind, std::string_view needed) {
  std::vector<std::string> given;
  if (scheme.formula("layer") != nullptr) given.emplace_back("layer");
  for (const BranchKind& one : branch_kinds()) {
    if (scheme.formula(one.key) != nullptr) given.push_back(one.key);
  }
  const char* where = kind.reads == BranchKind::Reads::memory ? "decoders with " : "";
  return NotBuiltError(fmt::format("scheme '{}' has no formula for {}{}; a file can give {} beside {}", scheme.name,
                                   where, kind.title, needed, fmt::join(given, " and ")));
}

// A formula for a whole layer names its branches; those that read a memory have one of their own.
void check_whole(const Scheme& scheme, const StackConfig& config) {
  const auto has = [&](const BranchKind* kind) {
    return std::ranges::any_of(config.branches,
                               [&](const LayerBranch& branch) { return branch.kind == kind && branch.layers.empty(); });
  };
  const Formula* formula = layer_formula(scheme, config);
  if (formula == nullptr) {
    const auto reads = [](const LayerBranch& one) { return one.kind->reads == BranchKind::Reads::memory; };
    throw no_formula(scheme, *std::ranges::find_if(config.branches, reads)->kind, "cross_layer");
  }
  visit(*formula, [&](const Expression& e) {
    const BranchKind* called = e.kind == Expression::Kind::call ? branch_called(e.name) : nullptr;
    // One that reads a memory is refused where it is called, with a caret.
    if (called == nullptr || called->reads == BranchKind::Reads::memory || has(called)) return;
    throw NotBuiltError(
        fmt::format("scheme '{}' calls {} in its formula for a layer, but layers of this model have no "
                    "{} branch; a formula for every sublayer suits it",
                    scheme.name, e.name, called->title));
  });
}

}  // namespace

const Formula* layer_formula(const Scheme& scheme, const StackConfig& config) {
  return scheme.formula(config.memory ? "cross_layer" : "layer");
}

const Formula* branch_formula(const Scheme& scheme, const BranchKind& kind) {
  const Formula* own = scheme.formula(kind.key);
  return own != nullptr ? own : scheme.formula("sublayer");
}

StackConfig checked(const Scheme& scheme, StackConfig config, std::int64_t width) {
  if (config.layers < 1) fail("a stack needs at least one layer, but {} were asked for", config.layers);
  NORMA_ASSERT(config.width == 0 || config.width == width);
  NORMA_ASSERT(!config.branches.empty() && reads_memory(config.branches) == static_cast<bool>(config.memory));
  config.width = width;
  const bool whole = scheme.formula("layer") != nullptr;
  for (const LearnedSpec& learned : scheme.learned) {
    if (learned.profile == nullptr || (!whole && learned.per == LearnedSpec::Per::sublayer)) continue;
    throw NotBuiltError(fmt::format("scheme '{}': only values learned per sublayer can be profiled, not '{}'",
                                    scheme.name, learned.name));
  }
  if (whole) check_whole(scheme, config);
  for (const LayerBranch& branch : config.branches) {
    if (!whole && branch_formula(scheme, *branch.kind) == nullptr)
      throw no_formula(scheme, *branch.kind, branch.kind->key);
  }
  return config;
}

}  // namespace norma
