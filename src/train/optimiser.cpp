#include "norma/train/optimiser.h"

#include <cmath>

#include "norma/core/words.h"

namespace norma {
namespace {

constexpr Word<OptimiserName> kNames[] = {
    {"adamw", OptimiserName::adamw}, {"adam", OptimiserName::adam},       {"radam", OptimiserName::radam},
    {"sgd", OptimiserName::sgd},     {"adagrad", OptimiserName::adagrad},
};

constexpr Word<Decay> kDecays[] = {
    {"decoupled", Decay::decoupled}, {"independent", Decay::independent}, {"l2", Decay::l2}};

// The variance rectification of RAdam (Liu et al. 2020, arXiv 1908.03265), 0 while there are too few steps for it.
double rectification(double beta2, double step) {
  const double longest = 2 / (1 - beta2) - 1;
  const double decayed = std::pow(beta2, step);
  const double length = longest - 2 * step * decayed / (1 - decayed);
  if (length <= 5) return 0;
  return std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
}

// Adam with decoupled decay is AdamW and has that name; under its own it has what Kingma & Ba's has everywhere, l2.
Decay decay_of(const OptimiserConfig& config) {
  return config.name == OptimiserName::adam && config.decay == Decay::decoupled ? Decay::l2 : config.decay;
}

}  // namespace

std::string_view name_of(OptimiserName name) { return word_for(std::span(kNames), name); }
OptimiserName optimiser_name(std::string_view word) { return from_word(std::span(kNames), word, "optimiser"); }
std::vector<std::string> optimiser_names() { return words_of(std::span(kNames)); }
std::string_view name_of(Decay decay) { return word_for(std::span(kDecays), decay); }
Decay decay_kind(std::string_view word) { return from_word(std::span(kDecays), word, "kind of weight decay"); }
std::vector<std::string> decay_kinds() { return words_of(std::span(kDecays)); }

OptimiserKind kind_of(OptimiserName name) {
  switch (name) {
    case OptimiserName::adamw:
    case OptimiserName::adam: return OptimiserKind::adam;
    case OptimiserName::radam: return OptimiserKind::radam;
    case OptimiserName::sgd: return OptimiserKind::sgd;
    case OptimiserName::adagrad: return OptimiserKind::adagrad;
  }
  return OptimiserKind::adam;
}

OptimiserGroup optimiser_group(const OptimiserConfig& config, double lr, double eps, double decay) {
  // Decoupled decay is a share of the parameter's own learning rate; independent decay and l2 are not.
  return {.lr = lr, .eps = eps, .shrink = decay_of(config) == Decay::decoupled ? lr * decay : decay, .l2 = decay};
}

ControlBlock control_block(const OptimiserConfig& config, double lr, double factor, std::int64_t step) {
  using C = OptimiserControl;
  const double t = static_cast<double>(step);
  ControlBlock control{};
  control[C::lr] = lr * factor;
  const Decay decay = decay_of(config);
  if (decay == Decay::decoupled) control[C::shrink] = lr * factor * config.weight_decay;
  if (decay == Decay::independent) control[C::shrink] = factor * config.weight_decay;
  if (decay == Decay::l2) control[C::l2] = config.weight_decay;
  control[C::beta1] = config.beta1;
  control[C::beta2] = config.beta2;
  control[C::eps] = config.eps;
  control[C::correction1] = 1 - std::pow(config.beta1, t);
  control[C::correction2] = 1 - std::pow(config.beta2, t);
  control[C::rectify] = config.name == OptimiserName::radam ? rectification(config.beta2, t) : 1;
  control[C::active] = 1;
  return control;
}

}  // namespace norma
