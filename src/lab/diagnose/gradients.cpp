// Causes that lie in gradients: none arrives, some do not, or they explode.
#include <fmt/format.h>

#include <cmath>

#include "lab/diagnose/case.h"

namespace norma {

void add_amplification(Case& one) {
  const std::optional<AmplificationPair>& amplification = one.amplification;
  if (!amplification || !(amplification->own > 1.5 * amplification->pre)) return;
  add_evidence(
      one,
      fmt::format("by theory a change of the weights moves the output of this model {:.1f} times as much as that "
                  "of a Pre-LN (amplification {:.3g} against {:.3g}, squared)",
                  std::sqrt(amplification->own / amplification->pre), amplification->own, amplification->pre),
      amplification->own, amplification->pre);
}

bool no_gradient_at_all(Case& one) {
  const SignReading& most = one.signs.layer_gradient_most;
  if (!most.there() || most.value > 0) return false;
  one.found.cause = Cause::gradients_vanish;
  one.found.words = "no gradient reaches any layer: it is 0 in all of them, at every step that was recorded";
  add_evidence(
      one, fmt::format("the largest gradient of a layer is 0 from step {} to step {}", most.step, one.signs.last_step),
      0, kNaN, most);
  return true;
}

bool gradients_vanish(Case& one) {
  const Signs& s = one.signs;
  if (!s.reach_late.there() || s.reach_late.value >= kReachLost || s.reach_lost == 0) return false;
  const bool from_start = s.reach_at_start.value < kReachLost;
  one.found.cause = Cause::gradients_vanish;
  one.found.words = fmt::format(
      "gradients {} reach all layers: those of {} have {:.1g} of the largest {}", from_start ? "do not" : "no longer",
      s.reach_late.site, s.reach_late.value,
      from_start ? std::string("from the start")
                 : fmt::format("({:.2g} at step 1), from step {} on", s.reach_at_start.value, s.reach_lost));
  add_evidence(one,
               fmt::format("the gradient of {} at step {} is {:.1g} of that of the layer with the largest",
                           s.reach_late.site, s.reach_late.step, s.reach_late.value),
               s.reach_late.value, s.reach_at_start.value, s.reach_late);
  if (!from_start && s.largest_update.there())
    add_evidence(
        one,
        fmt::format(
            "that came with updates of at most {:.2g} of the weights' rms (usual are {:.0e} to {:.0e}), {} warmup",
            s.largest_update.value, kUsualUpdate / 10, kUsualUpdate,
            one.member.settings.schedule.warmup == 0
                ? std::string("without")
                : fmt::format("after {} steps of", one.member.settings.schedule.warmup)),
        s.largest_update.value, kUsualUpdate, s.largest_update);
  add_amplification(one);
  return true;
}

bool gradients_explode(Case& one) {
  constexpr double kExploded = 100;  // times the gradient norm of the first step
  const Signs& s = one.signs;
  const bool grew = s.gradient_most.value > kExploded * s.gradient_at_start.value;
  const bool uneven = s.reach_at_start.there() && s.reach_at_start.value < 1e-3;
  if (!grew && !uneven) return false;
  one.found.cause = Cause::gradients_explode;
  one.found.words = grew ? fmt::format("gradients exploded: their norm rose from {:.2g} at step 1 to {:.2g} at step {}",
                                       s.gradient_at_start.value, s.gradient_most.value, s.gradient_most.step)
                         : std::string("gradients differ by orders of magnitude between layers from the start");
  add_evidence(one,
               fmt::format("the norm of all gradients is {:.3g} {}", s.gradient_most.value, where_of(s.gradient_most)),
               s.gradient_most.value, s.gradient_at_start.value, s.gradient_most);
  if (uneven)
    add_evidence(one,
                 fmt::format("at step 1 the gradient of {} is {:.1g} of the largest", s.reach_at_start.site,
                             s.reach_at_start.value),
                 s.reach_at_start.value, kNaN, s.reach_at_start);
  add_amplification(one);
  return true;
}

}  // namespace norma
