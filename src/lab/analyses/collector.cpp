#include "lab/analyses/collector.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/lab/statistics.h"
#include "norma/train/step.h"

namespace norma {
namespace {

// A decoder's stream begins anew, whatever stands below it; so does that of every stack.
std::size_t first_of_last_stack(const std::vector<std::string>& sites) {
  std::size_t first = sites.empty() ? 0 : sites.size() - 1;
  while (first > 0 && stack_of(sites[first - 1]) == stack_of(sites.back())) --first;
  return first;
}

MeasuredHistogram measured_histogram(const SingularValueHistogram& found, std::int64_t depth) {
  MeasuredHistogram histogram{.depth = depth, .exact = found.exact, .edges = {}, .share = {}};
  const LogHistogram& first = found.members.front();
  const std::size_t bins = first.share.size();
  for (std::size_t edge = 0; edge <= bins; ++edge) {
    const double place = static_cast<double>(edge) / static_cast<double>(bins);
    histogram.edges.push_back(std::pow(10, first.low + place * (first.high - first.low)));
  }
  for (std::size_t bin = 0; bin < bins; ++bin) {
    std::vector<double> shares;
    for (const LogHistogram& member : found.members) shares.push_back(member.share[bin]);
    histogram.share.push_back(estimate_of(shares));
  }
  std::vector<double> unresolved;
  for (const LogHistogram& member : found.members) {
    unresolved.push_back(member.unresolved);
    histogram.unresolved_below = std::max(histogram.unresolved_below, member.unresolved_below);
  }
  histogram.unresolved = estimate_of(unresolved);
  return histogram;
}

}  // namespace

std::optional<Exponent> law_along(const std::vector<std::string>& sites, std::span<const std::vector<double>> profile) {
  const auto along = profile.subspan(first_of_last_stack(sites));
  constexpr std::size_t kFirst = 3;
  if (along.size() < kFirst + 4) return std::nullopt;
  std::vector<double> k;
  for (std::size_t i = kFirst; i < along.size(); ++i) k.push_back(static_cast<double>(i + 1));
  return power_law(k, along.subspan(kFirst));
}

Collector::Collector(const std::vector<Instrument>& used) {
  for (const Instrument& instrument : used) {
    for (const AnalysisInfo& info : instrument.analyses) infos_.push_back(info);
  }
}

void Collector::add(const std::string& scheme, const ModelConfig& model, std::vector<Reading> readings) {
  for (Reading& reading : readings) {
    const auto info =
        std::find_if(infos_.begin(), infos_.end(), [&](const AnalysisInfo& one) { return one.name == reading.name; });
    NORMA_ASSERT(info != infos_.end());
    Collected& collected = found_[{reading.name, scheme}];
    collected.x.push_back(static_cast<double>(info->x == "sublayers" ? sublayers(model) : model.layers));
    collected.depths.push_back(model.layers);
    collected.readings.push_back(std::move(reading));
  }
}

std::vector<Analysis> Collector::finish(const std::vector<std::string>& schemes) const {
  std::vector<Analysis> all;
  for (const AnalysisInfo& info : infos_) {
    Analysis analysis{.name = info.name,
                      .title = info.title,
                      .x = info.x,
                      .unit = info.unit,
                      .log = info.log,
                      .about = info.about,
                      .source = info.source};
    if (info.exponent == ExponentOver::profile) analysis.exponent_of = "site";
    for (const std::string& scheme : schemes) {
      const auto collected = found_.find({info.name, scheme});
      if (collected != found_.end()) analysis.series.push_back(series_of(scheme, info, collected->second));
    }
    if (!analysis.series.empty()) all.push_back(std::move(analysis));
  }
  return all;
}

std::optional<Exponent> Collector::exponent_of(ExponentOver over, const Collected& collected) {
  if (over == ExponentOver::none || collected.readings.empty()) return std::nullopt;
  if (over == ExponentOver::depth) {
    std::vector<std::vector<double>> values;
    for (const Reading& reading : collected.readings) values.push_back(reading.value);
    return power_law(collected.x, values);
  }
  const Reading& deepest = collected.readings.back();
  return law_along(deepest.sites, deepest.profile);
}

Series Collector::series_of(const std::string& scheme, const AnalysisInfo& info, const Collected& collected) {
  Series series{.scheme = scheme, .x = collected.x, .y = {}};
  const auto middle = [&](const std::vector<double>& values) {
    const bool positive = std::ranges::all_of(values, [](double v) { return v > 0 && std::isfinite(v); });
    return info.log && positive ? log_estimate_of(values) : estimate_of(values);
  };
  for (std::size_t i = 0; i < collected.readings.size(); ++i) {
    const Reading& reading = collected.readings[i];
    series.y.push_back(middle(reading.value));
    if (!reading.sites.empty()) {
      LayerProfile profile{.depth = collected.depths[i], .sites = reading.sites, .y = {}};
      for (const std::vector<double>& site : reading.profile) profile.y.push_back(middle(site));
      profile.theory = reading.theory;
      series.profiles.push_back(std::move(profile));
    }
    if (reading.histogram) series.histograms.push_back(measured_histogram(*reading.histogram, collected.depths[i]));
  }
  const auto predicted = [](const Reading& reading) { return !reading.theory.empty(); };
  if (!collected.readings.empty() && std::ranges::all_of(collected.readings, predicted)) {
    series.theory = TheoryCurve{};
    for (const Reading& reading : collected.readings) series.theory->y.push_back(reading.theory.back());
  }
  series.exponent = exponent_of(info.exponent, collected);
  return series;
}

}  // namespace norma
