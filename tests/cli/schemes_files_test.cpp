// norma schemes as a process: the list, diagrams, folders and files of users, mistakes.
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

TEST(SchemesProcess, SpacesAroundANameDoNotCount) {
  const TemporaryFolder folder;
  EXPECT_EQ(explained(folder, {"post "}), explained(folder, {"post"}));
  EXPECT_EQ(test::run(folder, {"schemes", "(post)"}).code, 2) << "a formula of one unknown name";
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
