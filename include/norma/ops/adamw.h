// AdamW (Loshchilov & Hutter 2019), one parameter in one pass: p, m and v are updated in place.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// What the optimiser reads each step, per member: the layout of its `control` input.
struct AdamWControl {
  enum Index { lr, beta1, beta2, eps, weight_decay, correction1, correction2, size };
};

//   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2
//   p <- p (1 - lr wd) - lr / correction1 * m / (sqrt(v / correction2) + eps),  correction = 1 - beta^step
// Inputs p, g, m, v, control[7] and, when `scaled`, a factor [1] on g (clipping). Group rules multiply lr and wd.
class AdamW final : public Op {
 public:
  struct Group {
    double lr = 1;
    double weight_decay = 1;
  };

  AdamW(Group group, bool scaled) : group_(group), scaled_(scaled) {}

  std::string_view name() const override { return "adamw"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  CpuKernel cpu(std::span<const Type> in, std::span<const Type> out) const override;
  std::vector<Update> updates() const override { return {{0, 0}, {1, 2}, {2, 3}}; }

 private:
  Group group_;
  bool scaled_;
};

// Adds the update of one parameter, making its two states "<name>/m" and "<name>/v".
void adamw(Wire parameter, Wire gradient, Wire control, Wire gradient_scale = {}, AdamW::Group group = {});

}  // namespace norma
