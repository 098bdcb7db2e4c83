// Rotary positions (Su et al. 2021): each pair of channels of a head is turned by position * theta^(-2i / width).
#pragma once

#include "norma/graph/op.h"

namespace norma {

// Which channels of a head form pair i of its width / 2 pairs.
enum class RopePairs {
  interleaved,  // 2i and 2i + 1 (the paper, GPT-J)
  half_split,   // i and i + width / 2 (GPT-NeoX, Llama in Hugging Face folders)
};

std::string_view name_of(RopePairs pairs);

struct RopeOptions {
  std::int64_t head_width = 0;  // 0: the last axis of x, which must then be [batch, time, heads, head_width]
  std::int64_t time = 0;        // positions per sample; 0: the second axis of x. Needed when x is [rows, channels]
  std::int64_t rotated = 0;     // leading channels of a time step that are turned, the rest is copied; 0: all. In a
                                // packed projection of q, k and v: (heads + kv_heads) * head_width
  double theta = 10000;
  RopePairs pairs = RopePairs::half_split;
};

class Rope final : public Op {
 public:
  enum class Direction { forward, inverse };

  explicit Rope(RopeOptions options, Direction direction = Direction::forward)
      : options_(options), direction_(direction) {}
  const RopeOptions& options() const { return options_; }
  Direction direction() const { return direction_; }
  std::string_view name() const override { return direction_ == Direction::forward ? "rope" : "rope_inverse"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }
  bool can_overwrite(int, int) const override { return true; }

 private:
  RopeOptions options_;
  Direction direction_;
};

// x: [batch, time, heads, width], [batch, time, channels] or [rows, channels] with rows a multiple of options.time.
Wire rope(Wire x, const RopeOptions& options);

}  // namespace norma
