// Finding schemes: by name, by file, in folders of the user's own; bad files keep nobody from the others.
#include "norma/schemes/catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "check.h"
#include "temporary_folder.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::error_of;

// A folder of its own that NORMA_SCHEMES names, gone at the end.
class UserFolder : public testing::Test {
 protected:
  void SetUp() override { setenv("NORMA_SCHEMES", folder_.path().c_str(), 1); }
  void TearDown() override { unsetenv("NORMA_SCHEMES"); }
  fs::path write(const std::string& file, const std::string& text) const { return folder_.write(file, text); }
  static const SchemeEntry* entry(const std::vector<SchemeEntry>& all, const std::string& name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const SchemeEntry& e) { return e.name == name; });
    return found == all.end() ? nullptr : &*found;
  }

  test::TemporaryFolder folder_;
};

TEST_F(UserFolder, IsReadBesideTheCatalogue) {
  const fs::path file = write("mine.toml", "title = \"Mine\"\nsublayer = \"x + f(norm(x))/sqrt(l)\"\n");
  EXPECT_EQ(find_scheme("mine").title, "Mine");
  EXPECT_EQ(locate_scheme("mine").file, file);
  EXPECT_EQ(locate_scheme("pre").file, fs::path());
  const std::vector<SchemeEntry> all = all_schemes();
  EXPECT_EQ(all.size(), catalogue().size() + 1);
  ASSERT_NE(entry(all, "mine"), nullptr);
  EXPECT_FALSE(entry(all, "mine")->replaces);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST_F(UserFolder, WinsOverTheCatalogueAndSaysSo) {
  write("post.toml", "title = \"My own\"\nsublayer = \"x + f(x)\"\n");
  const SchemeEntry found = locate_scheme("post");
  EXPECT_EQ(found->title, "My own");
  EXPECT_TRUE(found.replaces);
  EXPECT_EQ(all_schemes().size(), catalogue().size());
}

TEST_F(UserFolder, ACopyOfABuiltInSchemeReplacesNothing) {
  fs::copy_file(fs::path(NORMA_SOURCE_DIR) / "schemes" / "post.toml", folder_ / "post.toml");
  EXPECT_FALSE(locate_scheme("post").replaces);
  EXPECT_EQ(find_scheme("post").title, "Post-LN");
}

TEST_F(UserFolder, WhatARunHasKeptComesFirstAsLongAsItIsHeld) {
  write("mine.toml", "title = \"Now\"\nsublayer = \"x + f(x)\"\n");
  {
    const KeptScheme first("mine", "title = \"Then\"\nsublayer = \"x + f(norm(x))\"\n");
    EXPECT_EQ(find_scheme("mine").title, "Then");
    EXPECT_EQ(find_scheme("mine").name, "mine");
    {
      const KeptScheme second("mine", "title = \"Later\"\nsublayer = \"x\"\n"), file("a/b.toml", "sublayer = \"x\"\n");
      EXPECT_EQ(find_scheme("mine").title, "Later");
      EXPECT_EQ(find_scheme("a/b.toml").name, "b");
      EXPECT_FALSE(has_scheme("a/b.toml")) << "only kept";
    }
    EXPECT_EQ(locate_scheme("mine").text, "title = \"Then\"\nsublayer = \"x + f(norm(x))\"\n");
  }
  EXPECT_EQ(find_scheme("mine").title, "Now");
  EXPECT_TRUE(has_scheme("mine") && has_scheme("pre"));
  EXPECT_FALSE(has_scheme("x + f(x)") || has_scheme("nobody"));
  EXPECT_NE(locate_scheme("pre").text.find("Pre-LN"), std::string::npos);
  EXPECT_EQ(locate_scheme("x + f(x)").text, "");
}

TEST_F(UserFolder, ABadFileIsReportedWhenUsedOrListedAndIsNotInTheWay) {
  const fs::path file = write("broken.toml", "sublayer = \"x + g(\"\n");
  EXPECT_EQ(find_scheme("pre").title, "Pre-LN");
  const std::string error = error_of([] { find_scheme("broken"); });
  EXPECT_EQ(error, file.string() +
                       ": scheme 'broken', sublayer: expected a value but found the end of the formula\n"
                       "  x + g(\n"
                       "        ^");
  const std::vector<SchemeEntry> all = all_schemes();
  ASSERT_NE(entry(all, "broken"), nullptr);
  EXPECT_FALSE(entry(all, "broken")->scheme);
  EXPECT_EQ(entry(all, "broken")->error, error);
}

TEST_F(UserFolder, NearestNamesIncludeTheUsersOwn) {
  write("my_scheme.toml", "sublayer = \"x + f(x)\"\n");
  EXPECT_EQ(error_of([] { find_scheme("my_schme"); }),
            "there is no scheme named 'my_schme' (did you mean 'my_scheme'?)");
}

TEST_F(UserFolder, AFolderThatIsNotThereIsAnEntryOfTheList) {
  setenv("NORMA_SCHEMES", (folder_.path().string() + "::" + folder_.path().string() + "/absent").c_str(), 1);
  write("mine.toml", "sublayer = \"x + f(x)\"\n");
  EXPECT_EQ(scheme_folders().size(), 2u) << "an empty part of the list is no folder";
  EXPECT_EQ(find_scheme("mine").name, "mine");
  const std::vector<SchemeEntry> all = all_schemes();
  const SchemeEntry* absent = entry(all, folder_.path().string() + "/absent");
  ASSERT_NE(absent, nullptr);
  EXPECT_NE(absent->error.find("cannot read the folder of schemes"), std::string::npos);
}

TEST_F(UserFolder, TheFirstFolderWins) {
  fs::create_directories(folder_ / "second");
  write("mine.toml", "title = \"first\"\nsublayer = \"x + f(x)\"\n");
  write("second/mine.toml", "title = \"second\"\nsublayer = \"x + f(x)\"\n");
  setenv("NORMA_SCHEMES", (folder_.path().string() + ":" + folder_.path().string() + "/second").c_str(), 1);
  EXPECT_EQ(find_scheme("mine").title, "first");
  add_scheme_folder(folder_ / "second");
  EXPECT_EQ(find_scheme("mine").title, "second") << "what is added comes before the environment";
}

TEST_F(UserFolder, FilesAreFoundByTheirPath) {
  const fs::path file = write("elsewhere.toml", "title = \"Here\"\nsublayer = \"x + f(x)\"\n");
  unsetenv("NORMA_SCHEMES");
  EXPECT_EQ(find_scheme(file.string()).title, "Here");
  EXPECT_EQ(error_of([&] { find_scheme(file.string() + ".toml"); }),
            fmt::format("{0}.toml: there is no scheme file '{0}.toml'", file.string()));
}

TEST_F(UserFolder, HugeFilesAreRefused) {
  const fs::path file = write("huge.toml", std::string(kLargestSchemeFile + 1, '#'));
  EXPECT_NE(error_of([&] { find_scheme(file.string()); }).find("a scheme file has at most 1048576"), std::string::npos);
}

TEST(Schemes, AddingAFolderThatIsNotThereFails) {
  EXPECT_NE(error_of([] { add_scheme_folder("/no/such/folder"); }).find("cannot read the folder of schemes"),
            std::string::npos);
}

TEST(Schemes, WhatIsNoNameIsAFormula) {
  EXPECT_EQ(find_scheme("x + f(norm(x))/sqrt(l)").name, "formula");
  EXPECT_EQ(error_of([] { find_scheme("pots"); }), "there is no scheme named 'pots' (did you mean 'post'?)");
}

TEST(Schemes, AFormulaSpansWhatItsBranchesSay) {
  const Scheme layer = find_scheme("y = norm(x); x + attn(y) + ffn(y)");
  ASSERT_NE(layer.formula("layer"), nullptr);
  EXPECT_EQ(layer.formula("sublayer"), nullptr);
  EXPECT_NE(find_scheme("x + f(norm(x))").formula("sublayer"), nullptr);
  EXPECT_NE(find_scheme("2*x").formula("sublayer"), nullptr) << "without a branch";
  EXPECT_EQ(error_of([] { find_scheme("x + attn(x) + f(x)"); }),
            "a formula for every sublayer calls f, one for a whole layer attn and ffn; this one calls attn as well\n"
            "  x + attn(x) + f(x)\n"
            "                ^^^^");
  EXPECT_NE(error_of([] { find_scheme("x + attn(x) + cross(x) + ffn(x)"); }).find("as cross_layer and layer"),
            std::string::npos);
}

TEST(Schemes, AFormulaIsItsOwnTitle) {
  EXPECT_EQ(find_scheme("x + f(norm(x))/2").title, "x + f(norm(x))/2");
  const std::string title = find_scheme("x + " + std::string(40, '1') + "*f(norm(x)) + 0*f(norm(x))").title;
  EXPECT_EQ(title, "x + " + std::string(40, '1') + "*f(norm(x)) +...");
  EXPECT_EQ(title.size(), 60u);
}

TEST(Schemes, SpacesAroundANameDoNotCount) {
  EXPECT_EQ(find_scheme(" pre ").name, "pre");
  EXPECT_EQ(find_scheme("pre\n").title, "Pre-LN");
  EXPECT_TRUE(has_scheme("pre "));
  const KeptScheme kept("mine ", "title = \"Kept\"\nsublayer = \"x + f(x)\"\n");
  EXPECT_EQ(find_scheme(" mine").title, "Kept");
}

}  // namespace
}  // namespace norma
