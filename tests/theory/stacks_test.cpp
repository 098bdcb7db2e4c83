// Encoder and decoder: what cross-attention carries up and back.
#include "theory/branches.h"

namespace norma {
namespace {

using test::config;
using test::kEps;
using test::linear_stacks;

TEST(Theory, GradientsOfAnEncoderAreThoseOfEveryCrossAttention) {
  for (const std::int64_t layers : {1, 2, 6}) {
    const EncoderDecoderTheory theory = propagate(test::scheme_named("post"), linear_stacks(1), config(layers));
    ASSERT_EQ(theory.encoder.streams.size(), static_cast<std::size_t>(2 * layers));
    ASSERT_EQ(theory.decoder.streams.size(), static_cast<std::size_t>(3 * layers));
    // Each cross-attention of Post-LN gives half of the gradient to the memory and leaves half to the stream.
    const double left = std::exp2(-static_cast<double>(layers));
    EXPECT_NEAR(theory.decoder.streams.front().gradient_rms, std::sqrt(left), 0.01) << layers;
    EXPECT_NEAR(theory.encoder.streams.front().gradient_rms, std::sqrt(1 - left), 0.01) << layers;
    EXPECT_EQ(theory.decoder.branches[1].kind, &branch_kind("cross"));
  }
}

TEST(Theory, ChangesOfAnEncoderReachTheDecoder) {
  // Post-LN: the encoder's change, 2N/2, replaces half of the decoder's at every cross-attention.
  const EncoderDecoderTheory theory = propagate(test::scheme_named("post"), linear_stacks(1), config(6));
  EXPECT_NEAR(theory.encoder.amplification, 6, 0.1);
  double change = 0;
  for (int layer = 0; layer < 6; ++layer) {
    change += 0.5;
    change = change / 2 + (theory.encoder.amplification + 1) / 2;
    change += 0.5;
  }
  EXPECT_NEAR(theory.decoder.amplification, change, 0.05);
}

TEST(Theory, StacksHaveTheirOwnConstants) {
  TheoryConfig place = config(6);
  place.encoder_layers = 18;
  const EncoderDecoderTheory theory = propagate(test::scheme_named("deepnorm"), linear_stacks(1), place);
  ASSERT_EQ(theory.encoder.streams.size(), 36u);
  const double encoder_beta = 0.87 * std::pow(std::pow(18, 4) * 6, -1.0 / 16), decoder_beta = std::pow(12 * 6, -0.25);
  EXPECT_NEAR(theory.encoder.branches[2].rms, encoder_beta * encoder_beta, kEps);
  for (const std::size_t k : {3u, 4u, 5u})
    EXPECT_NEAR(theory.decoder.branches[k].rms, decoder_beta * decoder_beta, kEps) << "the memory has rms 1";
  // The branch's share of a sublayer's gradient is beta^4 of alpha^2 + beta^4.
  const double alpha = std::pow(18, 0.25);
  const double share = std::pow(decoder_beta, 4) / (alpha * alpha + std::pow(decoder_beta, 4));
  EXPECT_NEAR(theory.encoder.streams.front().gradient_rms, std::sqrt(1 - std::pow(1 - share, 6)), 0.02);
}

TEST(Theory, CrossAttentionScalesWithItsMemory) {
  // No norms: what the decoder reads is the encoder's stream, of variance 4 after two branches of variance 1 and 2.
  const EncoderDecoderTheory theory = propagate(test::scheme_named("x + f(x)"), linear_stacks(1), config(1));
  EXPECT_NEAR(theory.encoder.output_rms, 2, 1e-9);
  EXPECT_NEAR(theory.decoder.branches[1].rms, 2, 1e-9);
  EXPECT_NEAR(theory.decoder.streams[1].rms, std::sqrt(6), 1e-9);
}

}  // namespace
}  // namespace norma
