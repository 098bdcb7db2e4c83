// Streams of several copies: hyper-connections, and stacks that grow.
#include "error_of.h"
#include "theory/branches.h"

namespace norma {
namespace {

using test::config;
using test::error_of;
using test::linear_branches;
using test::theory_of;

// Every copy of a hyper-connection begins as x and is written to alike, so that what is read is Pre-LN's stream.
TEST(Theory, HyperConnectionsBeginAsPreNorm) {
  for (const NormKind norm : {NormKind::rms, NormKind::layer}) {
    TheoryConfig place = config(12, norm);
    place.width = 64;
    const Theory pre = propagate(test::scheme_named("pre"), linear_branches(0.5), place);
    for (const char* name : {"hc_static", "hc_dynamic", "mhc"}) {
      SCOPED_TRACE(name);
      const Theory theory = propagate(test::scheme_named(name), linear_branches(0.5), place);
      EXPECT_NEAR(theory.amplification, pre.amplification, 1e-4);
      ASSERT_EQ(theory.streams.size(), pre.streams.size());
      for (std::size_t k = 0; k < pre.streams.size(); ++k) {
        EXPECT_NEAR(theory.streams[k].rms, pre.streams[k].rms, 1e-4) << k;
        EXPECT_NEAR(theory.streams[k].gradient_rms, pre.streams[k].gradient_rms, 1e-4) << k;
        EXPECT_NEAR(theory.branches[k].weight_gradient, pre.branches[k].weight_gradient, 1e-3) << k;
      }
    }
  }
}

TEST(Theory, CopiesAreMixedAndWeighed) {
  const auto scheme = [](const std::string& sublayer, const std::string& start) {
    const bool mixes = sublayer.find("(a") != std::string::npos;
    const std::string mixer = "a = { init = \"" + start + "\", shape = [\"2\", \"2\"], per = \"sublayer\" }\n";
    return parse_scheme("own", "title = \"Own\"\nsublayer = \"" + sublayer +
                                   "\"\n[streams]\nH = \"copies(x0, 2)\"\n[learned]\n" + (mixes ? mixer : "") +
                                   "b = { init = \"i\", shape = [\"2\"], per = \"sublayer\" }\n");
  };
  const auto rms = [&](const std::string& sublayer, const std::string& start) {
    return propagate(scheme(sublayer, start), linear_branches(1), config(1)).streams.front().rms;
  };
  // H = x (1, 1) + y (1, 2); rows of a are (1, 2) and (3, 4).
  const std::string write = "y = f(x); H = H + spread(b, y); ";
  EXPECT_NEAR(rms(write + "x = sum(H)", "0"), std::sqrt(4.0 + 9), 1e-9);
  EXPECT_NEAR(rms(write + "x = weigh(b, H)", "0"), std::sqrt(9.0 + 25), 1e-9);
  EXPECT_NEAR(rms(write + "H = mix(a, H); x = weigh(b, H)", "2*(i - 1) + j"), std::sqrt(17.0 * 17 + 27 * 27), 1e-9)
      << "1*(3, 5) + 2*(7, 11) of x and y";
  EXPECT_NEAR(rms(write + "H = mix(transpose(a), H); x = weigh(b, H)", "2*(i - 1) + j"), std::sqrt(16.0 * 16 + 27 * 27),
              1e-9)
      << "1*(4, 7) + 2*(6, 10) of x and y";
  EXPECT_NEAR(rms("H = mix(sinkhorn(a, 30), H); x = weigh(b, H)", "if i == j then 1 else 0"), 3, 1e-6)
      << "mixing equal copies changes nothing";
  EXPECT_NEAR(rms("H = H*1; x = weigh(softmax(b), H)", "0"), 1, 1e-9);
}

TEST(Theory, WeightsThatTheStreamMakesNeedToBeSmall) {
  const auto error = [](std::int64_t width) {
    TheoryConfig place = config(2);
    place.width = width;
    return error_of([&] { propagate(test::scheme_named("mhc"), linear_branches(1), place); });
  };
  EXPECT_EQ(error(4096), "");
  EXPECT_NE(error(1 << 20).find("differs between tokens by 0.41"), std::string::npos) << error(1 << 20);
}

TEST(Theory, AttentionResidualsReadTheMeanOfAllBranches) {
  const Theory theory = theory_of("attnres", 6);
  for (std::size_t k = 0; k < 12; ++k)
    EXPECT_NEAR(theory.streams[k].rms, 1 / std::sqrt(static_cast<double>(k + 1)), 1e-4) << k;
  // The last formula norms the mean of 13 wires of rms 1, and hands each of them 1/13 of what it divides by.
  EXPECT_NEAR(theory.branches.back().weight_gradient, std::sqrt(16 / 13.0), 1e-3);
  double gradient = 1 / 13.0;  // by every wire; branch k reads the mean of k wires through a norm
  for (std::size_t k = 12; k >= 1; --k) {
    EXPECT_NEAR(theory.branches[k - 1].weight_gradient, std::sqrt(16 * gradient), 2e-3) << k;
    gradient *= 1 + 1 / static_cast<double>(k);
    EXPECT_NEAR(theory.streams[k - 1].gradient_rms, std::sqrt(gradient), 1e-3) << k;
  }
  const Theory blocks = theory_of("attnres_block", 4), whole = theory_of("attnres", 4);  // eight blocks of one sublayer
  EXPECT_NEAR(blocks.amplification, whole.amplification, 1e-9);
  EXPECT_NEAR(blocks.branches.front().weight_gradient, whole.branches.front().weight_gradient, 1e-9);
  EXPECT_NEAR(theory_of("attnres_block", 8).streams[4].rms, std::sqrt((1 + 4.0) / 9), 1e-4)
      << "the embedding and two sums of two branches, a third each";
}

}  // namespace
}  // namespace norma
