// norma schemes as a process: what is said of one scheme, in text and JSON.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/schemes_check.h"

namespace norma {
namespace {

using test::Ended;
using test::explained;
using test::TemporaryFolder;
using Json = nlohmann::json;

TEST(SchemesProcess, CountsTheLayersOfEveryStack) {
  const TemporaryFolder folder;
  const Ended text =
      test::run(folder, {"schemes", "unet", "--family", "unet", "--layers", "4", "--width", "16", "--heads", "2"});
  EXPECT_NE(text.out.find("unet of 4 + 2 + 7 layers"), std::string::npos) << text.out << text.err;
}

TEST(SchemesProcess, CountsTheNormsOfEncoderDecoders) {
  const TemporaryFolder folder;
  const auto six = [&](const char* scheme) {
    return explained(folder, {scheme, "--family", "encoder_decoder", "--layers", "6", "--width", "512"});
  };
  const Json post = six("post"), pre = six("pre"), deepnorm = six("deepnorm");
  EXPECT_EQ(post.at("norm_instances"), 30);
  EXPECT_EQ(post.at("norm_parameters"), 30720);
  EXPECT_EQ(pre.at("norm_instances"), 32) << "a final norm on both stacks";
  EXPECT_EQ(pre.at("norm_parameters"), 32768);
  EXPECT_NEAR(deepnorm.at("constants").at("alpha").at("first"), std::pow(18, 0.25), 1e-12)
      << "the decoder's (3M)^(1/4)";
  EXPECT_NEAR(deepnorm.at("exponents").at("amplification"), 0, 0.1);
}

TEST(SchemesProcess, ExplainsOneSchemeWithItsTheory) {
  const TemporaryFolder folder;
  const Json post = explained(folder, {"post", "--norm", "rms"}), pre = explained(folder, {"pre"});
  EXPECT_NEAR(post.at("exponents").at("last_gradient"), 0, 0.05);
  EXPECT_GT(post.at("exponents").at("amplification"), 0.8);
  EXPECT_NEAR(pre.at("exponents").at("last_gradient"), -0.55, 0.1);
  EXPECT_NEAR(pre.at("exponents").at("stream_rms"), 0.55, 0.1);
  const double deep = explained(folder, {"pre", "--depths", "48,96,192"}).at("exponents").at("amplification");
  EXPECT_LT(deep, 0.3) << "a logarithm";
  EXPECT_GT(pre.at("exponents").at("amplification"), 1.3 * deep) << "which looks steeper over few layers";
  EXPECT_EQ(post.at("norm_parameters"), 24 * 512);
  EXPECT_GT(pre.at("flops_per_token"), 6.0 * 12 * 12 * 512 * 512) << "six for each weight of a product";
  const Ended text = test::run(folder, {"schemes", "deepnorm", "--layers", "24"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"DeepNorm", "⊕◄", "(2*N)^(1/4) = 2.632", "Xavier gain times beta = 0.2686",
                           "48 with 49152 parameters", "amplification  constant"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
}

// One question has one answer, whichever verb is asked.
TEST(SchemesProcess, SaysWhatInspectSays) {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> questions[] = {{"pre", "decoder"},
                                                           {"x + f(norm(x))", "decoder"},  // without a final norm
                                                           {"deepnorm", "mlp"},
                                                           {"post", "vit"},
                                                           {"resnet_v2", "resnet"},  // of one stage, with BatchNorm
                                                           {"norm(2*x + f(x))", "encoder_decoder"}};
  for (const auto& [scheme, family] : questions) {
    SCOPED_TRACE(family);
    const Json said = explained(folder, {scheme, "--family", family, "--depths", "2,4"});
    Json at = said.at("exponents_at");
    at.erase("sizes");
    EXPECT_EQ(at, (Json{{"layers", {2, 4}}, {"width", 32}, {"time", 16}}));
    const Ended measured =
        test::run(folder, {"inspect", "--scheme", scheme, "--json", "--seeds", "1", "--only", "amplification,gradient",
                           "--batches", "1", "--width", "32", "--time", "16", "--depths", "2,4", "--family", family});
    ASSERT_EQ(measured.code, 0) << measured.err;
    int compared = 0;
    const Json results = Json::parse(measured.out);
    for (const Json& analysis : results.at("inspect")) {
      const std::string name = analysis.at("name");
      if (name != "amplification" && name != "gradient_batch") continue;
      const Json& theory = analysis.at("series").at(0).at("theory");
      const double expected = said.at("exponents").at(name == "amplification" ? name : "last_gradient");
      EXPECT_NEAR(theory.at("exponent"), expected, 1e-6) << name << " of " << scheme;
      ++compared;
    }
    EXPECT_EQ(compared, 2);
  }
  const Ended text = test::run(folder, {"schemes", "pre"});
  EXPECT_NE(text.out.find("from 6 to 24 layers of width 128 and 64 tokens"), std::string::npos) << text.out;
}

// Of images, not of tokens; and what convolutions and BatchNorm do with depth, which the theory knows.
TEST(SchemesProcess, SpeaksOfImagesAndPredictsResidualNetworks) {
  const TemporaryFolder folder;
  const Ended text = test::run(folder, {"schemes", "resnet_v2", "--family", "resnet", "--width", "16"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"resnet of 12 layers, width 16\n", "one sample", "image_height 16", "stages 1", "He, gain 1",
                           "stream rms     N^0.", "By theory, from 12 to 96 layers of width 8"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  for (const char* part : {"token", "vocabulary", "heads", "Xavier", "no rule", "warmup"})
    EXPECT_EQ(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const Json said = explained(folder, {"resnet_v2", "--family", "resnet", "--width", "16"});
  EXPECT_EQ(said.at("counted"), "sample");
  EXPECT_EQ(said.at("norm"), "batch");
  EXPECT_EQ(said.at("exponents_at").at("sizes").at("stages"), 1);
  const double stage = 4 * 2 * 9 * 16 * 16 * 256;  // of three, which take about as much each
  EXPECT_NEAR(said.at("flops_per_token").get<double>() / (6 * 3 * stage), 1, 0.15) << "six for each weight and pixel";
  const Ended whole = test::run(folder, {"schemes", "b2t", "--family", "mlp", "--width", "16"});
  EXPECT_NE(whole.out.find("no rule for branches of attention, which layers"), std::string::npos) << whole.out;
  EXPECT_EQ(whole.out.find("token"), std::string::npos) << whole.out;
  const Ended zero = test::run(folder, {"schemes", "fixup", "--family", "resnet", "--width", "16"});
  EXPECT_NE(zero.out.find("He gain times"), std::string::npos) << zero.out;
}

// Where layers are alike, or each reads all below it, numbers at any depth follow from a few.
TEST(SchemesProcess, CountsAnyDepth) {
  const TemporaryFolder folder;
  const auto at = [&](const char* scheme, const char* layers) {
    return explained(folder, {scheme, "--layers", layers, "--width", "32", "--heads", "2"});
  };
  const Json deep = at("pre", "100000"), shallow = at("pre", "10");
  EXPECT_EQ(deep.at("norm_instances"), 200001);
  EXPECT_EQ(deep.at("stack_parameters").get<double>() - 64, 10000 * (shallow.at("stack_parameters").get<double>() - 64))
      << "all but the last norm";
  const double head = 6 * 32 * 256;
  EXPECT_NEAR(deep.at("flops_per_token").get<double>() - head,
              10000 * (shallow.at("flops_per_token").get<double>() - head), 1);
  const Json exact = at("attnres", "1000"), further = at("attnres", "4000");
  const double per_pair =
      1.0 / 16 * further.at("flops_per_token").get<double>() / exact.at("flops_per_token").get<double>();
  EXPECT_GT(per_pair, 0.7) << "grows with the square of the depth";
}

TEST(SchemesProcess, ShowsTheConstantsOfBothStacks) {
  const TemporaryFolder folder;
  const Json both = explained(folder, {"deepnorm", "--family", "encoder_decoder", "--layers", "6", "--width", "64"});
  EXPECT_NEAR(both.at("constants").at("alpha").at("first"), std::pow(18, 0.25), 1e-12);
  EXPECT_NEAR(both.at("encoder_constants").at("alpha").at("first"), 0.81 * std::pow(std::pow(6, 5), 1.0 / 16), 1e-12);
  EXPECT_FALSE(explained(folder, {"deepnorm", "--width", "64"}).contains("encoder_constants"));
  const Ended text =
      test::run(folder, {"schemes", "deepnorm", "--family", "encoder_decoder", "--layers", "6", "--width", "64"});
  for (const char* part : {"alpha, encoder 0.81*", "= 1.418", "alpha, decoder (3*M)^(1/4) = 2.06",
                           "0.497 in the encoder, 0.3433 in the decoder"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
}

TEST(SchemesProcess, SaysWhatIsLearnedAndHowItStarts) {
  const TemporaryFolder folder;
  const Json omega = explained(folder, {"admin", "--width", "64"}).at("learned").at(0);
  const Json expected = {{"name", "omega"},
                         {"shape", {"d"}},
                         {"init", "1"},
                         {"per", "sublayer"},
                         {"decay", true},
                         {"lr", "1"},
                         {"profile", "sqrt(var(omega*x) + var(f(x)))"}};
  EXPECT_EQ(omega, expected);
  EXPECT_EQ(explained(folder, {"pre"}).at("learned"), Json::array());
  const Json mixer = explained(folder, {"hc_static"}).at("learned").at(1);
  EXPECT_EQ(mixer.at("shape"), Json({"c", "c"}));
  EXPECT_EQ(mixer.at("decay"), false);
  const Ended admin = test::run(folder, {"schemes", "admin"});
  EXPECT_NE(admin.out.find("before step 0"), std::string::npos) << admin.out;
  EXPECT_NE(admin.out.find("sqrt(var(omega*x) + var(f(x)))"), std::string::npos) << admin.out;
  const Ended tfixup = test::run(folder, {"schemes", "tfixup"});
  EXPECT_NE(tfixup.out.find("embedding      deviation times embed"), std::string::npos) << tfixup.out;
  EXPECT_NE(tfixup.out.find("value          Xavier gain times gain"), std::string::npos) << tfixup.out;
}

TEST(SchemesProcess, OperationsFollowTheFormula) {
  const TemporaryFolder folder;
  const auto flops = [&](const char* scheme) -> double { return explained(folder, {scheme}).at("flops_per_token"); };
  const double pre = flops("pre");
  EXPECT_EQ(pre, 229675008);
  EXPECT_GT(flops("x + f(f(norm(x)))"), 1.9 * pre);
  EXPECT_LT(flops("x*2"), 0.1 * pre);
  EXPECT_GT(flops("mhc"), 1.001 * pre);
}

TEST(SchemesProcess, KnowsNormsByEitherName) {
  const TemporaryFolder folder;
  EXPECT_EQ(explained(folder, {"post", "--norm", "rmsnorm"}), explained(folder, {"post", "--norm", "rms"}));
}

TEST(SchemesProcess, ExplainsFormulasOfWholeLayers) {
  const TemporaryFolder folder;
  const std::string formula = "y = norm(x); x + attn(y) + ffn(y)";
  const Json parallel = explained(folder, {"parallel"}), given = explained(folder, {formula});
  EXPECT_EQ(given.at("title"), formula);
  EXPECT_EQ(given.at("formulas").at("layer"), formula);
  EXPECT_EQ(given.at("norm_instances"), 12) << "one in each layer";
  EXPECT_EQ(given.at("flops_per_token"), parallel.at("flops_per_token"));
  EXPECT_NEAR(given.at("exponents").at("stream_rms"), parallel.at("exponents").at("stream_rms"), 1e-6);
  EXPECT_NE(explained(folder, {formula, "--family", "encoder_decoder"}).value("not_built", "").find("cross_layer"),
            std::string::npos);
}

TEST(SchemesProcess, PredictsFormulasWithOptions) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine.toml") << "sublayer = \"x + f(norm(x))\"\n[branch.attention]\nv = \"rmsnorm\"\n";
  const Json table = explained(folder, {folder / "mine.toml"});
  EXPECT_EQ(explained(folder, {"x + f(norm(x), v = \"rmsnorm\")"}).at("exponents"), table.at("exponents"));
  EXPECT_NE(explained(folder, {"x + f(norm(x))"}).at("exponents"), table.at("exponents")) << "v matters";
}

}  // namespace
}  // namespace norma
