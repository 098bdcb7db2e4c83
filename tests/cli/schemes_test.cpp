// norma schemes as a process: the list, one scheme in text and JSON, user's folders, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;
using Json = nlohmann::json;

// The theory of a small model, which takes less time.
const std::vector<std::string> kSmall = {"--theory-width", "32", "--theory-time", "16"};

Json explained(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "schemes");
  arguments.push_back("--json");
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  const Ended outcome = test::run(folder, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

TEST(SchemesProcess, ListsTheCatalogue) {
  const TemporaryFolder folder;
  const Json all = explained(folder, {});
  EXPECT_GE(all.size(), 30u);
  for (const Json& scheme : all) {
    for (const char* key : {"name", "title", "source", "formula"}) EXPECT_NE(scheme.value(key, ""), "") << scheme;
  }
  const Ended text = test::run(folder, {"schemes"});
  EXPECT_NE(text.out.find("norm(alpha*x + f(x))"), std::string::npos);
}

// They were all listed, whether or not a model of the family could be built with them.
TEST(SchemesProcess, ListsForAFamilyWhatItTrainsAndWhyItRefusesTheRest) {
  const TemporaryFolder folder;
  const Ended text = test::run(folder, {"schemes", "--family", "gcn"});
  ASSERT_EQ(text.code, 0) << text.err;
  const auto refused_from = text.out.find("\nRefused by the family gcn with its usual sizes:\n");
  ASSERT_NE(refused_from, std::string::npos) << text.out;
  int refused = 0;
  for (const Json& scheme : explained(folder, {"--family", "gcn"})) {
    const std::string name = scheme.at("name");
    const Ended planned = test::run(folder, {"plan", "--family", "gcn", "--model.layers=3", "--model.width=8",
                                             "--model.heads=2", "--model.scheme=" + name});
    EXPECT_EQ(planned.code, scheme.contains("refused") ? 2 : 0) << name << ": " << planned.err;
    EXPECT_EQ(text.out.find("\n" + name + " ", refused_from) != std::string::npos, scheme.contains("refused")) << name;
    if (!scheme.contains("refused")) continue;
    ++refused;
    EXPECT_NE(planned.err.find(scheme.at("refused").get<std::string>()), std::string::npos)
        << name << ": " << planned.err << scheme.at("refused");
  }
  EXPECT_GE(refused, 5);
  EXPECT_EQ(test::run(folder, {"schemes"}).out.find("Refused"), std::string::npos) << "a decoder takes them all";
  EXPECT_EQ(text.out.find("adaln"), std::string::npos) << "there is no condition";
  EXPECT_NE(test::run(folder, {"schemes", "--family", "dit"}).out.find("\nadaln_zero "), std::string::npos);
  const Json leaking = explained(folder, {"--norm", "batch"});
  EXPECT_NE(leaking.at(0).value("refused", "").find("later token"), std::string::npos) << leaking.at(0);
}

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

TEST(SchemesProcess, WritesTheDiagram) {
  const TemporaryFolder folder;
  const Ended outcome = test::run(folder, {"schemes", "x + f(norm(x))/sqrt(l)", "--svg", folder / "block.svg"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(test::read_file(folder / "block.svg").find("÷ sqrt(l)"), std::string::npos);
  const Ended refused = test::run(folder, {"schemes", "post", "--svg", folder / "no/such/folder.svg"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("folder.svg"), std::string::npos) << refused.err;
  const Ended nameless = test::run(folder, {"schemes", "--svg", folder / "none.svg"});
  EXPECT_EQ(nameless.code, 2);
  EXPECT_NE(nameless.err.find("--svg draws one scheme"), std::string::npos) << nameless.err;
}

// A diagram is written beside the old one and takes its place whole: a link to the old one still shows the old one.
TEST(SchemesProcess, ReplacesADiagramWhole) {
  const TemporaryFolder folder;
  std::ofstream(folder / "block.svg") << "old";
  std::filesystem::create_hard_link(folder / "block.svg", folder / "link.svg");
  const Ended outcome = test::run(folder, {"schemes", "pre", "--svg", folder / "block.svg"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(test::read_file(folder / "block.svg").find("<svg"), std::string::npos);
  EXPECT_EQ(test::read_file(folder / "link.svg"), "old");
  const Ended device = test::run(folder, {"schemes", "pre", "--svg", "/dev/null"});
  EXPECT_EQ(device.code, 0) << device.err;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(SchemesProcess, ReadsFoldersOfTheUser) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine.toml") << "title = \"Mine\"\nsublayer = \"x + f(norm(x))/2\"\n";
  std::ofstream(folder / "post.toml") << "title = \"My Post\"\nsublayer = \"norm(x + f(x)/2)\"\n";
  std::ofstream(folder / "broken.toml") << "sublayer = \"x + g(\"\n";
  const std::string here = folder / "";
  const Ended list = test::run(folder, {"schemes", "--schemes-dir", here});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_NE(list.out.find("Mine"), std::string::npos);
  EXPECT_NE(list.out.find("instead of norma's own 'post'"), std::string::npos);
  EXPECT_NE(list.err.find("broken.toml: scheme 'broken', sublayer"), std::string::npos);
  EXPECT_EQ(explained(folder, {"mine", "--schemes-dir", here}).at("title"), "Mine");
  EXPECT_EQ(explained(folder, {folder / "mine.toml"}).at("norm_instances"), 24);
  const Ended broken = test::run(folder, {"schemes", "broken", "--schemes-dir", here});
  EXPECT_EQ(broken.code, 2);
  EXPECT_NE(broken.err.find("^"), std::string::npos);
}

// Every verb that builds a model finds a user's scheme by its name, and nothing without the folder, except where a run
// has kept it.
TEST(SchemesProcess, FoldersOfTheUserCountForEveryVerb) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "mine");
  std::filesystem::create_directory(folder / "other");
  std::ofstream(folder / "mine/halved.toml") << "title = \"Halved\"\nsublayer = \"x + f(norm(x))/2\"\n";
  std::ofstream(folder / "small.toml") << "[model]\nscheme = \"halved\"\nlayers = 1\nwidth = 8\nheads = 2\n"
                                          "batch = 2\ntime = 8\n[train]\nsteps = 2\n";
  const std::string config = folder / "small.toml";
  const std::vector<std::vector<std::string>> verbs = {
      {"plan", config},
      {"check", config, "--out", folder / "check.safetensors"},
      {"train", config, "--out", folder / "run", "--quiet"},
      {"sweep", config, "--out", folder / "sweep", "--quiet", "--train.seed=[1,2]"},
      {"study", "--config", config, "--out", folder / "study", "--quiet", "--schemes", "halved", "--depths", "1,2",
       "--lr", "1e-3", "--warmup", "0", "--seeds", "1", "--budget", "0"},
      {"inspect", "--scheme", "halved", "--layers", "1", "--width", "8", "--heads", "2", "--time", "8", "--seeds", "1",
       "--only", "stream", "--quiet"},
  };
  for (std::vector<std::string> arguments : verbs) {
    const Ended without = test::run(folder, arguments);
    EXPECT_EQ(without.code, 2) << arguments[0];
    EXPECT_NE(without.err.find("'halved'"), std::string::npos) << arguments[0] << ": " << without.err;
    // Before other arguments and more than once: it takes one folder each time.
    arguments.insert(arguments.begin() + 1, {"--schemes-dir", folder / "other", "--schemes-dir", folder / "mine"});
    const Ended with = test::run(folder, arguments);
    EXPECT_EQ(with.code, 0) << arguments[0] << ": " << with.err;
  }
  const std::string run = folder / "run";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"inspect", "--run", run, "--only", "stream", "--quiet"},
        {"generate", run, "--tokens", "2"},
        {"sweep", config, "--out", folder / "sweep", "--quiet", "--train.seed=[1,2]"},
        {"sweep", config, "--out", folder / "sweep", "--report", "--train.seed=[1,2]"}}) {
    const Ended kept = test::run(folder, arguments);
    EXPECT_EQ(kept.code, 0) << arguments[0] << ": " << kept.err;
  }
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

TEST(SchemesProcess, SpacesAroundANameDoNotCount) {
  const TemporaryFolder folder;
  EXPECT_EQ(explained(folder, {"post "}), explained(folder, {"post"}));
  EXPECT_EQ(test::run(folder, {"schemes", "(post)"}).code, 2) << "a formula of one unknown name";
}

TEST(SchemesProcess, PredictsFormulasWithOptions) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine.toml") << "sublayer = \"x + f(norm(x))\"\n[branch.attention]\nv = \"rmsnorm\"\n";
  const Json table = explained(folder, {folder / "mine.toml"});
  EXPECT_EQ(explained(folder, {"x + f(norm(x), v = \"rmsnorm\")"}).at("exponents"), table.at("exponents"));
  EXPECT_NE(explained(folder, {"x + f(norm(x))"}).at("exponents"), table.at("exponents")) << "v matters";
}

TEST(SchemesProcess, NamesTheFileOfAWrongOption) {
  const TemporaryFolder folder;
  std::ofstream(folder / "mine.toml") << "sublayer = \"x + f(norm(x))\"\n[branch.attention]\nq = \"rmsnrom\"\n";
  const Ended outcome = test::run(folder, {"schemes", folder / "mine.toml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("mine.toml: scheme 'mine', branch.attention.q: 'rmsnrom'"), std::string::npos)
      << outcome.err;
}

TEST(SchemesProcess, MistakesEndWithCodeTwo) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"schemes", "pots"},
                                                    {"schemes", "post", "--family", "decodr"},
                                                    {"schemes", "post", "--layer", "99"},
                                                    {"schemes", "x + f(nrm(x))"},
                                                    {"schemes", "y = x + f(x)"},
                                                    {"schemes", "post", "--norm", "lyer"},
                                                    {"train", "--schemes-dir", "/no/such/folder"},
                                                    {"schemes", "--schemes-dir", "/no/such/folder"}}) {
    const Ended outcome = test::run(folder, arguments);
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}", fmt::join(arguments, " "));
    EXPECT_NE(outcome.err, "");
  }
}

}  // namespace
}  // namespace norma
