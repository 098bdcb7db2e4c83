// What the layers of one model are worth: every analysis of depth together.
#include <algorithm>

#include "norma/core/error.h"
#include "norma/lab/depth_use.h"
#include "norma/lab/inspect.h"
#include "norma/lab/lens.h"
#include "norma/lab/paths.h"
#include "norma/lab/share.h"
#include "norma/train/result.h"

namespace norma {
namespace {

std::vector<double> means_of(const std::vector<std::vector<double>>& values) {
  std::vector<double> means;
  for (const std::vector<double>& one : values) means.push_back(estimate_of(one).mean);
  return means;
}

// Models of several depths say the same.
void add_note(std::vector<std::string>& notes, std::string note) {
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
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
  if (use.shape_changes)
    add_note(notes,
             "layers that change the shape of the stream are left out one by one, not swapped with others or compared "
             "with them");
  const std::size_t counted = last_stacks(subject.model).size();
  if (counted > 1) found.layer_names = layers_of_last_stacks(subject.model);
  if (subject.model.family->sites(subject.model).size() > counted)
    add_note(notes, fmt::format("what layers are worth is that of the layers of '{}' alone, the last stack",
                                last_stack(subject.model).scope));
  if (!use.learned) found.effective_depth = {};
  if (!use.learned)
    add_note(notes, fmt::format("{} knows no more than {}, so it has no effective depth", found.scheme,
                                numbers ? "the mean of what is asked" : "how frequent each answer is"));
  Subject alone = subject;  // short analyses of one model gain nothing from more threads
  alone.share = {};
  try {
    tell(0.7, "logit lens");
    if (numbers) fail("a {} answers numbers, no classes", subject.model.family->name);
    const LogitLens lens = measure_lens(alone);
    found.lens_divergence = means_of(lens.divergence);
    found.lens_agreement = means_of(lens.agreement);
  } catch (const Error& error) {
    add_note(notes, fmt::format("no logit lens: {}", error.what()));
  }
  try {
    tell(0.8, "linear probes");
    if (numbers) fail("a {} answers numbers, no classes", subject.model.family->name);
    const Probes probes = measure_probes(alone);
    for (const std::vector<double>& border : probes.share) {
      std::vector<RightShare> models;
      for (const double share : border) models.push_back({share, probes.targets});
      found.probe.push_back(*mean_share(models));
    }
  } catch (const Error& error) {
    add_note(notes, fmt::format("no linear probes: {}", error.what()));
  }
  try {
    tell(0.9, "path lengths");
    found.path_share = means_of(measure_path_lengths(subject).share);
  } catch (const Error& error) {
    add_note(notes, fmt::format("no path lengths: {}", error.what()));
  }
  tell(1, "");
  return found;
}

}  // namespace norma
