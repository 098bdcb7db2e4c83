// y = x / (1 - p) where kept, 0 where dropped. Element i is kept when word i of the random stream of (seed, site, step)
// is at least p 2^32; nothing is saved, the backward pass draws the same words again.
#pragma once

#include <string>

#include "norma/graph/op.h"

namespace norma {

// Inputs: x, p[1] of x's dtype, and key i32[4]: low and high word of the seed, low and high word of the step. All are
// data, so each member has its own. p = 0 is the identity; p >= 1 drops everything. No gradient by p.
class Dropout final : public Op {
 public:
  explicit Dropout(std::string site) : site_(std::move(site)) {}
  const std::string& site() const { return site_; }
  std::string_view name() const override { return "dropout"; }
  std::string attributes() const override { return "site=" + site_; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int in) const override { return in == 0; }
  void choose(Widths& widths) const override { widths.in = {widths.in[0], false, false}, widths.out = {widths.in[0]}; }
  bool can_overwrite(int, int in) const override { return in == 0; }

 private:
  std::string site_;
};

// `site` names the random stream; two sites of one model must not share a name.
Wire dropout(Wire x, Wire p, Wire key, std::string_view site);

}  // namespace norma
