#include "norma/ops/attention_remade.h"

#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {

std::string AttentionRemade::attributes() const { return Attention(layout_, options_).attributes(); }

std::vector<Type> AttentionRemade::infer(std::span<const Type> in) const {
  const std::size_t gradients = layout_ == QkvLayout::packed ? 1 : 3;
  if (in.size() < gradients + 1) fail("takes the inputs of attention and a gradient, not {}", in.size());
  const std::vector<Type> made = Attention(layout_, options_).infer(in.first(in.size() - 1));
  check_type("gradient by the context", in.back(), made[0]);
  std::vector<Type> out(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(gradients));
  out.insert(out.end(), made.begin(), made.end());
  return out;
}

Wires AttentionRemade::reference(std::span<const Wire> in) const {
  Graph& graph = in[0].graph();
  Wires read(in.begin(), in.end() - 1);
  const Wires made = graph.apply(std::make_shared<Attention>(layout_, options_), read);
  read.insert(read.end(), {made[0], made[1], in.back()});
  Wires all = graph.apply(std::make_shared<AttentionBackward>(layout_, options_, SavedContext::given), read);
  all.insert(all.end(), made.begin(), made.end());
  return all;
}

Cost AttentionRemade::cost(std::span<const Type> in, std::span<const Type> out) const {
  const std::size_t gradients = out.size() - 2;
  std::vector<Type> saved(in.begin(), in.end() - 1);
  Cost all = Attention(layout_, options_).cost(saved, out.last(2));
  saved.insert(saved.end(), {out[gradients], out[gradients + 1], in.back()});
  const Cost backward = AttentionBackward(layout_, options_, SavedContext::given).cost(saved, out.first(gradients));
  all.flops += backward.flops;
  all.products += backward.products;
  all.bytes = traffic(in, out);
  return all;
}

void AttentionRemade::choose(Widths& widths) const {
  widths.all(true);
  widths.out.back() = false;
}

}  // namespace norma
