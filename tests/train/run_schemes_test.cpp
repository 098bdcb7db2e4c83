// What a run keeps of its scheme, and what counts as another scheme.
#include "norma/train/run_schemes.h"

#include <gtest/gtest.h>

#include "norma/train/config.h"
#include "temporary_folder.h"

namespace norma {
namespace {

TEST(RunSchemes, TitlesSourcesAndCommentsAreNoDifference) {
  EXPECT_EQ(scheme_difference("sublayer = \"x + f(x)\"\n", "sublayer = \"x + f(x)\"\n"), std::nullopt);
  EXPECT_EQ(scheme_difference("title = \"A\"\nsublayer = \"x + f(x)\"\n",
                              "# why\nsource = \"B\"\nsublayer   =   'x + f(x)'\n"),
            std::nullopt);
}

TEST(RunSchemes, TheFirstDifferenceIsNamed) {
  const std::string base = "sublayer = \"x + a*f(x)\"\n[constants]\na = \"2\"\n";
  EXPECT_EQ(scheme_difference(base, "sublayer = \"x + a*f(x)\"\n[constants]\na = \"3\"\n"),
            "constants.a was '2', now it is '3'");
  EXPECT_EQ(scheme_difference(base, base + "[lr]\nattention = \"2\"\n"), "lr.attention was nothing, now it is '2'");
  EXPECT_EQ(scheme_difference(base + "[lr]\nattention = \"2\"\n", base), "lr.attention was '2', now it is nothing");
}

// A run directory with nothing but a configuration and a scheme.
struct KeptRun {
  KeptRun(const std::string& name, const std::string& scheme) {
    folder.write("config.toml", "[model]\nscheme = \"" + name + "\"\n");
    if (!scheme.empty()) folder.write("scheme.toml", scheme);
  }
  std::filesystem::path path() const { return folder.path(); }

  test::TemporaryFolder folder;
};

TEST(RunSchemes, ARunDirectoryIsALibrary) {
  const KeptRun own("mine", "title = \"Kept\"\nsublayer = \"x + f(x)\"\n");
  EXPECT_EQ(library_of_run(own.path()).find("mine")->title, "Kept");
  EXPECT_EQ(library_to_resume(own.path()).find("mine")->title, "Kept") << "nothing else has the name";
  const KeptRun changed("pre", "title = \"Kept\"\nsublayer = \"x + f(x)\"\n");
  EXPECT_EQ(library_of_run(changed.path()).find("pre")->title, "Kept");
  EXPECT_EQ(library_to_resume(changed.path()).find("pre")->title, "Pre-LN") << "so that the change is noticed";
}

TEST(RunSchemes, TwoMeaningsOfOneNameLiveSideBySide) {
  const KeptRun first("mine", "sublayer = \"x + f(x)\"\n");
  const KeptRun second("mine", "sublayer = \"norm(x + f(x))\"\n");
  const auto parameters = [](const KeptRun& run) {
    const std::string text = "[model]\nscheme = \"mine\"\nvocabulary = 5\n";
    const RunConfig config = parse_config(text, "run.toml", library_of_run(run.path()));
    Graph graph;
    return build_model(graph, config.model).parameters.size();
  };
  EXPECT_LT(parameters(first), parameters(second));
  EXPECT_LT(parameters(first), parameters(second)) << "in any order";
}

TEST(RunSchemes, WithoutARunOthersAreAsTheyAre) {
  const KeptRun formula("x + f(norm(x))", "");
  EXPECT_EQ(library_of_run(formula.path()).find("x + f(norm(x))")->text, "") << "the configuration holds it itself";
  EXPECT_EQ(library_of_run("/no/such/run").find("pre")->title, "Pre-LN");
}

}  // namespace
}  // namespace norma
