// What the layers of one model are worth: every analysis of depth together.
#include "norma/core/error.h"
#include "norma/lab/depth_use.h"
#include "norma/lab/inspect.h"
#include "norma/lab/lens.h"
#include "norma/lab/paths.h"
#include "norma/train/result.h"

namespace norma {
namespace {

std::vector<double> means_of(const std::vector<std::vector<double>>& values) {
  std::vector<double> means;
  for (const std::vector<double>& one : values) means.push_back(estimate_of(one).mean);
  return means;
}

}  // namespace

DepthFinding inspect_depth(const Subject& subject, std::vector<std::string>& notes, const Progress& progress) {
  const auto tell = [&](double done, std::string_view what) {
    if (progress) progress(done, what);
  };
  const DepthUse use = measure_depth_use(
      subject, {.progress = [&](double done) { tell(0.7 * done, "leaving out, swapping and moving layers"); }});
  DepthFinding found{.scheme = subject.model.scheme.asked(),
                     .layers = use.layers,
                     .loss = estimate_of(use.loss),
                     .effective_depth = use.effective_depth,
                     .kept_loss = means_of(use.kept),
                     .deletion = estimates_of(use.deletion),
                     .swap = estimates_of(use.swap),
                     .width_equivalence = estimates_of(use.width_equivalence),
                     .influence = estimates_of(use.influence),
                     .angular_distance = use.angular_distance};
  const bool numbers = !loss_unit(subject.model).empty();
  if (!use.learned)
    notes.push_back(fmt::format("{} knows no more than {}, so it has no effective depth", found.scheme,
                                numbers ? "the mean of what is asked" : "how frequent each token is"));
  if (numbers) {
    notes.push_back(
        fmt::format("no logit lens and no linear probes: a {} answers numbers, no classes", subject.model.family->name));
  } else {
    tell(0.7, "logit lens");
    Subject alone = subject;  // short analyses of one model gain nothing from more threads
    alone.share = {};
    const LogitLens lens = measure_lens(alone);
    found.lens_divergence = means_of(lens.divergence);
    found.lens_agreement = means_of(lens.agreement);
    try {
      tell(0.8, "linear probes");
      found.probe = estimates_of(measure_probes(alone));
    } catch (const Error& error) {
      notes.push_back(fmt::format("no linear probes: {}", error.what()));
    }
  }
  try {
    tell(0.9, "path lengths");
    found.path_share = means_of(measure_path_lengths(subject).share);
  } catch (const Error& error) {
    notes.push_back(fmt::format("no path lengths: {}", error.what()));
  }
  tell(1, "");
  return found;
}

}  // namespace norma
