#include "norma/lab/inspect_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/lab/study_depths.h"

namespace norma {
namespace {

constexpr double kManyTimes = 1.5;  // what is called different by that factor
constexpr double kHugeLogit = 100;

const Analysis* analysis_named(const Findings& findings, std::string_view name) {
  for (const Analysis& analysis : findings.analyses) {
    if (analysis.name == name && !analysis.series.empty()) return &analysis;
  }
  return nullptr;
}

bool is_measured(const Series& series) {
  return !series.y.empty() && std::isfinite(series.y.back().mean) && series.y.back().mean > 0;
}

std::string law_of(const Series& series) {
  if (!series.exponent) return "";
  const Exponent& e = *series.exponent;
  if (e.low <= 0 && e.high >= 0)
    return fmt::format("how it changes with depth is open (N^{:.2f}, [{:.2f}, {:.2f}] includes 0)", e.value, e.low,
                       e.high);
  return fmt::format("it {} with depth as N^{:.2f} [{:.2f}, {:.2f}]", e.value > 0 ? "grows" : "falls", e.value, e.low,
                     e.high);
}

std::string interval_text(const Estimate& e) {
  return e.n > 1 ? fmt::format("{:.3g} [{:.3g}, {:.3g}]", e.mean, e.low, e.high) : fmt::format("{:.3g}", e.mean);
}

// The schemes with the largest and the smallest value at the deepest model.
std::string amplification_words(const Analysis& analysis) {
  std::vector<const Series*> all;
  for (const Series& series : analysis.series) {
    if (is_measured(series)) all.push_back(&series);
  }
  if (all.empty()) return "";
  std::sort(all.begin(), all.end(), [](auto a, auto b) { return a->y.back().mean < b->y.back().mean; });
  const Series &least = *all.front(), &most = *all.back();
  std::string words = fmt::format("Amplification of {} at {} {} is {}", most.scheme, most.x.back(), analysis.x,
                                  interval_text(most.y.back()));
  if (const std::string law = law_of(most); !law.empty()) words += "; " + law;
  words += ".";
  if (all.size() < 2) return words;
  const double times = most.y.back().mean / least.y.back().mean;
  const bool apart = most.y.back().n > 1 && least.y.back().n > 1 && most.y.back().low > least.y.back().high;
  words += fmt::format(" A change of its weights moves the output {:.1f} times as much as in {} ({}){}",
                       std::sqrt(times), least.scheme, interval_text(least.y.back()),
                       apart ? "." : "; the intervals overlap, so these networks do not tell them apart.");
  return words;
}

std::string gradient_words(const Series& series) {
  if (!is_measured(series)) return "";
  std::string words;
  if (series.exponent) words = fmt::format("Gradient of the last layer of {}: {}.", series.scheme, law_of(series));
  if (series.profiles.empty() || series.profiles.back().y.size() < 2) return words;
  const LayerProfile& profile = series.profiles.back();
  const double first = profile.y.front().mean, last = profile.y.back().mean;
  if (!(first > 0) || !(last > 0)) return words;
  const double ratio = first / last;
  words += fmt::format("{}At {} the gradient of {} at {} is {:.2g} times that at {}{}.", words.empty() ? "" : " ",
                       layers_text(profile.depth), words.empty() ? series.scheme : std::string("this scheme"),
                       profile.sites.front(), ratio, profile.sites.back(),
                       ratio > kManyTimes       ? "; it grows on its way back"
                       : ratio < 1 / kManyTimes ? "; it fades on its way back"
                                                : "; it arrives evenly");
  return words;
}

std::string stream_words(const Series& series) {
  if (!is_measured(series) || series.profiles.empty() || series.profiles.back().y.size() < 2) return "";
  const LayerProfile& profile = series.profiles.back();
  const double first = profile.y.front().mean, last = profile.y.back().mean;
  return fmt::format("The stream of {} at {} {} (rms {:.3g} after {}, {:.3g} after {}).", series.scheme,
                     layers_text(profile.depth),
                     last > kManyTimes * first   ? fmt::format("grows {:.1f}-fold along the layers", last / first)
                     : last < first / kManyTimes ? std::string("shrinks along the layers")
                                                 : std::string("keeps its size"),
                     first, profile.sites.front(), last, profile.sites.back());
}

// The law of what branches add, beside the theory's: of Pre-LN and of BatchNorm before branches l^-1/2, since the
// variance of the stream grows linearly.
std::string share_words(const Series& series) {
  if (!is_measured(series) || !series.exponent) return "";
  const Exponent& e = *series.exponent;
  const std::string theory =
      series.theory && series.theory->exponent ? fmt::format("; theory l^{:.2f}", *series.theory->exponent) : "";
  if (e.low <= 0 && e.high >= 0)
    return fmt::format(
        "How the share of branches of {} changes along the stack is open (l^{:.2f}, [{:.2f}, {:.2f}]{}).",
        series.scheme, e.value, e.low, e.high, theory);
  return fmt::format(
      "The share of branches of {} {} along the stack as l^{:.2f} [{:.2f}, {:.2f}] of the rms of the stream, l^{:.2f} "
      "of "
      "its variance{}.",
      series.scheme, e.value > 0 ? "grows" : "falls", e.value, e.low, e.high, 2 * e.value,
      theory.empty() ? "" : fmt::format(" ({} and l^{:.2f})", theory.substr(2), 2 * *series.theory->exponent));
}

std::string attention_words(const Series& series) {
  if (!is_measured(series) || series.y.back().mean < kHugeLogit) return "";
  return fmt::format("Attention of {} is saturated: the largest logit of the last layer is {:.3g}.", series.scheme,
                     series.y.back().mean);
}

std::string depth_words(const DepthFinding& found) {
  const Estimate& e = found.effective_depth;
  if (e.n == 0 || !std::isfinite(e.mean)) return "";
  return fmt::format("{} uses {:.1f} [{:.1f}, {:.1f}] of its {} layers (loss {:.4f}).", found.scheme, e.mean, e.low,
                     e.high, found.layers, found.loss.mean);
}

template <typename Words>
void add_for_each(const Findings& findings, std::string_view name, const Words& words, std::vector<std::string>& to) {
  constexpr std::size_t kMostSchemes = 3;  // of more the tables speak
  const Analysis* analysis = analysis_named(findings, name);
  if (analysis == nullptr || analysis->series.size() > kMostSchemes) return;
  for (const Series& series : analysis->series) {
    if (std::string sentence = words(series); !sentence.empty()) to.push_back(std::move(sentence));
  }
}

}  // namespace

std::vector<std::string> conclude(const Findings& findings) {
  std::vector<std::string> sentences;
  if (const Analysis* analysis = analysis_named(findings, "amplification")) {
    if (std::string words = amplification_words(*analysis); !words.empty()) sentences.push_back(std::move(words));
  }
  add_for_each(findings, "gradient", gradient_words, sentences);
  add_for_each(findings, "stream", stream_words, sentences);
  add_for_each(findings, "branch_share", share_words, sentences);
  add_for_each(findings, "attention_logit", attention_words, sentences);
  for (const DepthFinding& found : findings.depth_use) {
    if (std::string words = depth_words(found); !words.empty()) sentences.push_back(std::move(words));
  }
  return sentences;
}

}  // namespace norma
