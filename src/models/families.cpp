#include <algorithm>

#include "models/dit/family.h"
#include "models/gcn/family.h"
#include "models/mixer/family.h"
#include "models/mlp/family.h"
#include "models/resnet/family.h"
#include "models/transformer/families.h"
#include "models/unet/family.h"
#include "models/vit/family.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/models/family.h"

namespace norma {
namespace {

// The one table: a row for each family, made in its own folder.
const std::vector<FamilyRow>& rows() {
  static const std::vector<FamilyRow> all = {
      decoder_family(), encoder_family(), encoder_decoder_family(), mlp_family(), resnet_family(), vit_family(),
      mixer_family(),   gcn_family(),     graphs_family(),          dit_family(), unet_family()};
  return all;
}

}  // namespace

std::span<const FamilyRow> families() { return rows(); }

std::string family_names() {
  std::string names;
  for (const FamilyRow& row : rows()) names += (names.empty() ? "" : &row == &rows().back() ? " or " : ", ") + row.name;
  return names;
}

Family::Family(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  const auto found = std::ranges::find(rows(), plain, &FamilyRow::name);
  if (found == rows().end()) {
    std::vector<std::string> names;
    for (const FamilyRow& row : rows()) names.push_back(row.name);
    fail("there is no family '{}'{}; expected {}", name, did_you_mean(name, names), family_names());
  }
  row_ = &*found;
}

Shape InputSpec::shape() const {
  std::vector<std::int64_t> dimensions;
  for (const Size& size : sizes) dimensions.push_back(size.value);
  return Shape(dimensions);
}

std::string StackSites::site(std::int64_t layer, const BranchKind& branch) const {
  return fmt::format("{}layers.{}.{}", prefix(), layer, branch.scope);
}

std::vector<std::string> StackSites::names() const {
  std::vector<std::string> all;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const LayerBranch& branch : branches) {
      if (branch.in(layer)) all.push_back(site(layer, *branch.kind));
    }
  }
  return all;
}

std::vector<const BranchKind*> StackSites::kinds() const {
  std::vector<const BranchKind*> all;
  for (const LayerBranch& branch : branches) all.push_back(branch.kind);
  return all;
}

const BranchKind& StackSites::closing() const {
  const auto everywhere =
      std::find_if(branches.rbegin(), branches.rend(), [](const LayerBranch& branch) { return branch.layers.empty(); });
  NORMA_ASSERT(everywhere != branches.rend());
  return *everywhere->kind;
}

std::size_t first_of_last_stream(std::span<const StackSites> stacks) {
  std::size_t first = stacks.size() - 1;
  while (first > 0 && stacks[first].stream == StackSites::Stream::goes_on) --first;
  return first;
}

std::int64_t sublayers_before(const LayerBranches& branches, std::int64_t layer) {
  std::int64_t count = 0;
  for (const LayerBranch& branch : branches) {
    count += branch.layers.empty() ? layer : std::distance(branch.layers.begin(), branch.layers.lower_bound(layer));
  }
  return count;
}

bool reads_memory(const LayerBranches& layer) {
  return std::ranges::any_of(layer,
                             [](const LayerBranch& branch) { return branch.kind->reads == BranchKind::Reads::memory; });
}

}  // namespace norma
