#include "lab/study/depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "lab/workshop.h"
#include "norma/lab/inspect.h"

namespace norma {
namespace {

struct MeasuredDepth {
  DepthFinding found = {};
  std::vector<std::string> notes = {};
  bool measured = false;
};

struct OutOfTime {};

Subject subject_of(const DepthSubject& one, const std::shared_ptr<const Source>& source) {
  const StoredModel stored = open_stored_model(one.directory);
  Subject subject{.model = stored.config.model, .source = source, .weights = stored.weights};
  subject.seeds = {static_cast<std::uint64_t>(stored.config.train.data_seed)};
  subject.model.dropout = subject.model.smoothing = subject.model.mixture = false;
  subject.step = static_cast<double>(one.outcome.last_step);
  subject.steps = static_cast<double>(one.outcome.steps);
  subject.device = stored.config.train.device;
  return subject;
}

}  // namespace

std::vector<std::size_t> by_turns(const std::vector<DepthSubject>& subjects) {
  std::vector<std::pair<std::size_t, std::size_t>> turns;  // how many of its scheme came before, index
  std::map<std::size_t, std::size_t> seen;
  for (std::size_t i = 0; i < subjects.size(); ++i) turns.emplace_back(seen[subjects[i].scheme]++, i);
  std::stable_sort(turns.begin(), turns.end());
  std::vector<std::size_t> order;
  for (const auto& [turn, index] : turns) order.push_back(index);
  return order;
}

void measure_depth_of(const std::vector<DepthSubject>& subjects, const std::shared_ptr<const Source>& source,
                      int threads, std::vector<SchemeEvidence>& evidence, Findings& findings, StudyObserver& observer,
                      const std::atomic<bool>& stop, double seconds) {
  const auto began = std::chrono::steady_clock::now();
  const auto time_is_over = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds;
  };
  const std::vector<std::size_t> order = by_turns(subjects);
  std::vector<MeasuredDepth> all(subjects.size());
  Workshop shop(threads, std::max(1, static_cast<int>(all.size())));
  std::mutex telling;
  double done = 0;
  shop.run_each(all.size(), [&](std::size_t place, const Workshop::Threads& share) {
    const std::size_t index = order[place];
    if (stop || time_is_over()) return;
    {
      const std::lock_guard lock(telling);
      observer.progressed("use of depth", done++ / static_cast<double>(all.size()),
                          evidence[subjects[index].scheme].title);
    }
    Subject subject = subject_of(subjects[index], source);
    subject.threads = 1;  // one small model: its analyses and their variants stand side by side instead
    subject.share = share;
    try {
      all[index].found = inspect_depth(subject, all[index].notes, [&](double, std::string_view) {
        if (time_is_over()) throw OutOfTime();
      });
      all[index].measured = true;
    } catch (const OutOfTime&) {
    }
  });
  if (stop) return;
  for (std::size_t scheme = 0; scheme < evidence.size(); ++scheme) {
    std::vector<double> depths;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (subjects[i].scheme != scheme || !all[i].measured) continue;
      findings.notes.insert(findings.notes.end(), all[i].notes.begin(), all[i].notes.end());
      depths.push_back(all[i].found.effective_depth.mean);
      // The profiles of the first seed stand for all; the number is a mean over them.
      if (depths.size() == 1) findings.depth_use.push_back(std::move(all[i].found));
    }
    const bool asked = std::ranges::any_of(subjects, [&](const DepthSubject& one) { return one.scheme == scheme; });
    if (depths.empty() && asked)
      findings.notes.push_back(
          fmt::format("{}: use of depth was left out, it takes longer than {:.0f} s; --depth-use "
                      "measures it whatever it takes",
                      evidence[scheme].title, seconds));
    if (depths.empty()) continue;
    Estimate depth = depths.size() > 1 ? estimate_of(depths) : findings.depth_use.back().effective_depth;
    evidence[scheme].depth_layers = findings.depth_use.back().layers;
    depth.low = std::max(0.0, depth.low);  // the interval cannot leave the model
    depth.high = std::min(static_cast<double>(evidence[scheme].depth_layers), depth.high);
    findings.depth_use.back().effective_depth = depth;
    evidence[scheme].effective_depth = depth;
  }
}

}  // namespace norma
