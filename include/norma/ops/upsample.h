// Images made larger by repeating their pixels (nearest neighbour), channels last.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// x[batch, height, width, channels] -> y[batch, factor height, factor width, channels]: y[b, i, j] = x[b, i / factor, j
// / factor]; the transpose, `gather`, adds up what was repeated.
class Upsample final : public Op {
 public:
  enum class Way { repeat, gather };
  Upsample(Way way, std::int64_t factor) : way_(way), factor_(factor) {}
  Way way() const { return way_; }
  std::int64_t factor() const { return factor_; }

  std::string_view name() const override { return way_ == Way::repeat ? "upsample" : "upsample_backward"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  Way way_;
  std::int64_t factor_;
};

Wire upsample(Wire x, std::int64_t factor = 2);

}  // namespace norma
