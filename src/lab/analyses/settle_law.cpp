#include "lab/analyses/settle_law.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "lab/workshop.h"
#include "norma/core/arena.h"
#include "norma/core/machine.h"

namespace norma {
namespace {

// The models of one scheme with readings of one analysis: which of them, and which instrument it comes from.
std::optional<Exponent> law_of(const std::vector<ModelReadings>& readings, const std::vector<std::size_t>& of_scheme,
                               std::size_t instrument, const SettledLaw& law) {
  std::vector<double> x;
  std::vector<std::vector<double>> y;
  for (const std::size_t index : of_scheme) {
    for (const Reading& reading : readings[index].by_instrument[instrument]) {
      if (reading.name != law.analysis) continue;
      x.push_back(static_cast<double>(sublayers(readings[index].subject.model)));
      y.push_back(reading.value);
    }
  }
  return x.empty() ? std::nullopt : power_law(x, y);
}

void append_members(std::vector<Reading>& to, const std::vector<Reading>& more) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].value.insert(to[i].value.end(), more[i].value.begin(), more[i].value.end());
    for (std::size_t site = 0; site < to[i].profile.size(); ++site)
      to[i].profile[site].insert(to[i].profile[site].end(), more[i].profile[site].begin(), more[i].profile[site].end());
  }
}

std::vector<std::uint64_t> next_seeds(const std::vector<std::uint64_t>& known, std::size_t from, std::size_t count) {
  std::vector<std::uint64_t> seeds;
  const std::uint64_t last = *std::ranges::max_element(known);
  for (std::size_t i = 0; i < count; ++i) seeds.push_back(last + 1 + from + i);
  return seeds;
}

}  // namespace

int models_at_once(const std::vector<ModelConfig>& models, std::size_t seeds, int threads) {
  double largest = 1;
  for (const ModelConfig& model : models) {
    const double stream =
        static_cast<double>(model.batch * model.family->positions(model)) * static_cast<double>(model.width);
    largest = std::max(largest, stream * static_cast<double>(model.layers));
  }
  constexpr double kBytesOfActivation = 60.0 * sizeof(double) * 4;
  const double fitting =
      static_cast<double>(available_memory()) / (largest * kBytesOfActivation * static_cast<double>(seeds));
  const auto wanted = std::min(models.size(), static_cast<std::size_t>(threads));
  return static_cast<int>(std::clamp(fitting, 1.0, std::max(1.0, static_cast<double>(wanted))));
}

Settled settle_law(const InspectOptions& options, const std::vector<Instrument>& used,
                   const std::vector<ModelConfig>& models, std::vector<ModelReadings>& readings, int threads,
                   const Progress& progress) {
  const SettledLaw& law = *options.settle;
  const auto gives = [&](const Instrument& one) {
    return std::ranges::any_of(one.analyses, [&](const AnalysisInfo& info) { return info.name == law.analysis; });
  };
  const auto instrument = static_cast<std::size_t>(std::ranges::find_if(used, gives) - used.begin());
  if (instrument == used.size()) return Settled::as_far_as_allowed;
  using Clock = std::chrono::steady_clock;
  Clock::duration last{};
  const std::size_t each = options.seeds.size();
  for (std::size_t extra = 0; 2 * each + extra <= law.most; extra += each) {
    std::vector<std::size_t> open;
    for (const SchemeChoice& scheme : options.schemes) {
      std::vector<std::size_t> of_scheme;
      for (std::size_t i = 0; i < models.size(); ++i) {
        if (models[i].scheme.asked() == scheme.asked()) of_scheme.push_back(i);
      }
      const std::optional<Exponent> found = law_of(readings, of_scheme, instrument, law);
      if (found && 2 * found->by_seeds > law.width) open.insert(open.end(), of_scheme.rbegin(), of_scheme.rend());
    }
    if (open.empty()) return Settled::as_far_as_allowed;
    const Clock::time_point began = Clock::now();
    if (law.until != Clock::time_point::max() && began + last > law.until) return Settled::out_of_time;
    std::atomic<std::size_t> done = 0;
    std::mutex telling;
    Workshop shop(threads, models_at_once(models, each, threads));
    shop.run_each(open.size(), [&](std::size_t place, const Workshop::Threads& share) {
      const ModelConfig& model = models[open[place]];
      if (progress) {
        const std::lock_guard lock(telling);
        progress(static_cast<double>(done++) / static_cast<double>(open.size()),
                 fmt::format("{}, {} layers: more networks", model.scheme.asked(), model.layers));
      }
      Subject subject =
          initial_subject(model, options.open(model), next_seeds(options.seeds, extra, each), share(), options.device);
      subject.share = share;
      append_members(readings[open[place]].by_instrument[instrument], used[instrument].measure(subject));
    });
    last = Clock::now() - began;
  }
  return Settled::as_far_as_allowed;
}

}  // namespace norma
