#include "train/records.h"

#include <algorithm>

namespace norma {

std::vector<Metric> RunRecords::step(Cohort& cohort, int member, double seconds_per_step) const {
  const MemberState& state = cohort.member(member);
  std::vector<Metric> metrics;
  if (members_ > 1) metrics.push_back({"member", std::int64_t{member}});
  metrics.push_back({"loss", state.loss});
  metrics.push_back({"gradient_norm", state.gradient_norm});
  metrics.push_back({"lr", state.lr});
  metrics.push_back({"tokens_per_second", static_cast<double>(cohort.tokens_per_step()) / seconds_per_step});
  for (const ProbeValue& probe : cohort.probes(member)) metrics.push_back({probe.kind + "/" + probe.site, probe.value});
  return metrics;
}

std::vector<Metric> RunRecords::evaluation(const Cohort& cohort, int member) const {
  const MemberState& state = cohort.member(member);
  if (state.diverged || !state.evaluation_loss) return {};
  std::vector<Metric> metrics;
  if (members_ > 1) metrics.push_back({"member", std::int64_t{member}});
  metrics.push_back({"evaluation_loss", *state.evaluation_loss});
  if (state.evaluation_accuracy) metrics.push_back({"evaluation_accuracy", *state.evaluation_accuracy});
  return metrics;
}

std::vector<Metric> RunRecords::event(const MemberEvent& event) const {
  std::vector<Metric> metrics;
  if (members_ > 1) metrics.push_back({"member", std::int64_t{event.member}});
  metrics.push_back({"event", event.what});
  metrics.push_back({"why", event.why});
  return metrics;
}

std::vector<EventScalar> RunRecords::scalars(int member, std::span<const Metric> metrics) const {
  const std::string prefix = members_ > 1 ? fmt::format("member {}/", member) : "";
  std::vector<EventScalar> scalars;
  for (const Metric& metric : metrics) {
    if (const double* value = std::get_if<double>(&metric.value))
      scalars.push_back({prefix + metric.name, static_cast<float>(*value)});
  }
  return scalars;
}

}  // namespace norma
