// Attention made again together with its backward pass: the context and all gradients of a head in one block.
#include "norma/ops/attention_remade.h"

#include "cuda/gradients.h"

namespace norma {
namespace {

struct HeadSizes {
  std::int64_t batch, heads, time, width;
};
// One tile and two, parts of them, heads that the one launch takes, and too narrow, too many or too long ones.
std::vector<HeadSizes> head_sizes() {
  return {{3, 2, 128, 64}, {32, 4, 128, 64}, {2, 3, 100, 48}, {2, 2, 64, 40}, {1, 1, 33, 64},
          {2, 2, 65, 56},  {2, 2, 90, 32},   {90, 3, 70, 64}, {1, 2, 200, 64}};
}

enum class Made { together, apart };

void build_attention(Graph& g, DType t, const HeadSizes& s, Mask mask, bool with_lengths, Made made) {
  const AttentionOptions options{.heads = s.heads, .mask = mask, .scale = {}};
  Wires in = {g.input("qkv", {{s.batch, s.time, 3 * s.heads * s.width}, t})};
  if (with_lengths) in.push_back(g.input("lengths", {{s.batch}, DType::i32}));
  const Wire gradient = g.input("dcontext", {{s.batch, s.time, s.heads * s.width}, t});
  Wires found;
  if (made == Made::together) {
    in.push_back(gradient);
    found = g.apply(std::make_shared<AttentionRemade>(QkvLayout::packed, options), in);
  } else {
    const Wires forward = g.apply(std::make_shared<Attention>(QkvLayout::packed, options), in);
    in.insert(in.end(), {forward[0], forward[1], gradient});
    found = g.apply(std::make_shared<AttentionBackward>(QkvLayout::packed, options, SavedContext::given), in);
    found.insert(found.end(), forward.begin(), forward.end());
  }
  g.output("dqkv", found[0]);
  g.output("context", found[1]);
  g.output("lse", found[2]);
}

TEST(CudaAttentionRemade, AgreesWithTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const HeadSizes& sizes : head_sizes()) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      const auto build = [&](Graph& g, DType t) { build_attention(g, t, sizes, mask, false, Made::together); };
      const test::Run run{.build = build, .members = sizes.batch > 50 ? 1 : 3, .inactive = sizes.batch > 50 ? -1 : 1};
      const std::string what =
          fmt::format("{} x {} heads of {} x {}", sizes.batch, sizes.heads, sizes.time, sizes.width);
      EXPECT_EQ(test::rounded(run, Precision::bf16, 8 * 0x1p-8), "") << what;
      EXPECT_EQ(test::rounded(run, Precision::f32, 2e-5), "") << what;
    }
  }
}

TEST(CudaAttentionRemade, HasTheBitsOfTheTwoApart) {
  SKIP_WITHOUT_GPU();
  for (const HeadSizes& sizes : head_sizes()) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      for (const bool with_lengths : {false, true}) {
        const auto results = [&](Made made) {
          Graph g;
          build_attention(g, DType::f32, sizes, mask, with_lengths, made);
          const auto session = make_session(compile(g, cuda_backend(), {.narrow = true}), {.members = 2});
          for (int member = 0; member < 2; ++member)
            test::stage_start(*session, member, static_cast<std::uint64_t>(member + 1), sizes.time + 1);
          session->run();
          return test::results_of(*session, 1);
        };
        const std::string what = fmt::format("{} x {} heads of {} x {}, {} lengths", sizes.batch, sizes.heads,
                                             sizes.time, sizes.width, with_lengths);
        EXPECT_EQ(results(Made::together), results(Made::apart)) << what;
      }
    }
  }
}

}  // namespace
}  // namespace norma
