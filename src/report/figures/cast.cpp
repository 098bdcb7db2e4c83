#include "report/figures/cast.h"

#include <algorithm>
#include <cctype>

#include "norma/core/error.h"

namespace norma {
namespace {

// "Peri-LN (Sandwich-LN)" is short without its end; of the formula "x + f(x)" it would be wrong.
std::string short_of(const std::string& title) {
  const std::size_t open = title.rfind(" (");
  if (open == std::string::npos || open == 0 || !title.ends_with(')')) return title;
  const auto before = static_cast<unsigned char>(title[open - 1]);
  const bool plain = std::isalnum(before) != 0 && title.find(')', open) == title.size() - 1;
  return plain ? title.substr(0, open) : title;
}

// Names of people's own schemes can be formulas of any length.
std::string clipped(const std::string& label) {
  constexpr std::size_t kMost = 48;
  std::size_t at = 0, letters = 0;
  while (at < label.size() && letters < kMost) {
    ++at;
    while (at < label.size() && (static_cast<unsigned char>(label[at]) & 0xc0u) == 0x80u) ++at;
    ++letters;
  }
  return at < label.size() ? label.substr(0, at) + "…" : label;
}

// The scheme that is advised or, where nothing is, the one with the smallest loss.
std::string lead_of(const Results& results) {
  if (!results.advice.choice.empty()) return results.advice.choice;
  if (!results.advice.ranking.empty()) return results.advice.ranking.front();
  if (results.kind == ResultsKind::study) return "";  // where it ranks nothing, nothing leads
  const Tuned* best = nullptr;
  for (const Tuned& one : results.tuned) {
    if (one.loss.n > 0 && (best == nullptr || one.loss.mean < best->loss.mean)) best = &one;
  }
  return best != nullptr ? best->scheme : "";
}

}  // namespace

Cast::Cast(const Results& results) {
  for (const SchemeSummary& one : results.schemes) add(one.name, one.title);
  for (const Verdict& one : results.verdicts) add(one.scheme, one.scheme);
  for (const Tuned& one : results.tuned) add(one.scheme, one.scheme);
  for (const StabilityMap& one : results.maps) add(one.scheme, one.scheme);
  for (const RunOutcome& one : results.runs) add(one.scheme, one.scheme);
  for (const RampLimit& one : results.ramps) add(one.scheme, one.scheme);
  for (const DepthEfficiency& one : results.depth_efficiency) add(one.scheme, one.scheme);
  for (const DepthFinding& one : results.depth_use) add(one.scheme, one.scheme);
  for (const Comparison& one : results.comparisons) add(one.a, one.a), add(one.b, one.b);
  for (const std::string& one : results.advice.ranking) add(one, one);
  for (const Analysis& analysis : results.analyses) {
    for (const Series& one : analysis.series) add(one.scheme, one.scheme);
  }
  if (members_.empty()) return;
  const std::string lead = lead_of(results);
  // The one that everybody knows: Pre-LN, or what comes nearest to it, or simply another.
  CastMember* base = nullptr;
  for (const std::string_view known : {"pre", "pre_gpt2", "post"}) {
    for (CastMember& member : members_) {
      if (base == nullptr && member.name == known && member.name != lead) base = &member;
    }
  }
  for (CastMember& member : members_) {
    if (member.name == lead)
      member.tone = draw::Tone::lead;
    else if (base == nullptr && members_.size() == 2)
      base = &member;
  }
  if (base != nullptr) base->tone = draw::Tone::base;
  // Where nothing leads, one or two schemes still deserve their colours.
  if (lead.empty() && members_.size() <= 2) {
    for (CastMember& member : members_) {
      if (member.tone == draw::Tone::rest) {
        member.tone = draw::Tone::lead;
        break;
      }
    }
  }
}

int Cast::index(std::string_view scheme) const {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const CastMember& one) { return one.name == scheme; });
  NORMA_ASSERT(found != members_.end());
  return static_cast<int>(found - members_.begin());
}

void Cast::add(const std::string& name, const std::string& title) {
  for (const CastMember& member : members_) {
    if (member.name == name) return;
  }
  const std::string shown = title.empty() ? name : title;
  members_.push_back(
      {.name = name, .title = shown, .label = clipped(short_of(shown)), .marker = static_cast<int>(members_.size())});
}

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

}  // namespace norma
