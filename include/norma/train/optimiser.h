// The choice of an optimiser and the numbers it reads at each step.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "norma/ops/optimiser.h"

namespace norma {

enum class OptimiserName { adamw, adam, radam, sgd, adagrad };

enum class Decay {
  decoupled,    // p <- p - lr wd p (Loshchilov & Hutter 2019); under the name adam it is l2
  independent,  // p <- p - factor wd p, factor the schedule's: not scaled by the peak rate (Wortsman et al. 2023)
  l2,           // g <- g + wd p
};

struct OptimiserConfig {
  OptimiserName name = OptimiserName::adamw;
  double beta1 = 0.9;  // sgd: momentum
  double beta2 = 0.98;
  double eps = 1e-8;
  double weight_decay = 0;
  Decay decay = Decay::decoupled;
};

std::string_view name_of(OptimiserName name);
OptimiserName optimiser_name(std::string_view word);  // throws Error naming the nearest
std::vector<std::string> optimiser_names();
std::string_view name_of(Decay decay);
Decay decay_kind(std::string_view word);
std::vector<std::string> decay_kinds();

OptimiserKind kind_of(OptimiserName name);

// How the optimiser treats one parameter: multipliers for learning rate, eps and decay as its role has them.
OptimiserGroup optimiser_group(const OptimiserConfig& config, double lr, double eps, double decay);

// The control block of a step (counted from 1) at peak rate `lr` and schedule factor `factor`, for an active member.
using ControlBlock = std::array<double, OptimiserControl::size>;
ControlBlock control_block(const OptimiserConfig& config, double lr, double factor, std::int64_t step);

}  // namespace norma
