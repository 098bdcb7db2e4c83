// Finding schemes: by name, by file, in folders of the user's own; bad files keep nobody from the others.
#include "norma/schemes/library.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "check.h"
#include "places.h"
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
  static SchemeLibrary library() { return SchemeLibrary::of_environment(); }
  fs::path write(const std::string& file, const std::string& text) const { return folder_.write(file, text); }
  static const SchemeEntry* entry(const std::vector<SchemeEntry>& all, const std::string& name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const SchemeEntry& e) { return e.name == name; });
    return found == all.end() ? nullptr : &*found;
  }

  test::TemporaryFolder folder_;
};

TEST_F(UserFolder, IsReadBesideTheCatalogue) {
  const fs::path file = write("of_a_user.toml", "title = \"Mine\"\nsublayer = \"x + f(norm(x))/sqrt(l)\"\n");
  EXPECT_EQ(library().find("of_a_user")->title, "Mine");
  EXPECT_EQ(library().locate("of_a_user").file, file);
  EXPECT_EQ(library().locate("pre").file, fs::path());
  const std::vector<SchemeEntry> all = library().all();
  EXPECT_EQ(all.size(), catalogue().size() + 1);
  ASSERT_NE(entry(all, "of_a_user"), nullptr);
  EXPECT_FALSE(entry(all, "of_a_user")->replaces);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(SchemeNames, TitlesAndAnyCaseAreNames) {
  const SchemeLibrary library;
  for (const char* asked : {"pre", "PRE", "Pre-LN", "pre-ln"}) {
    EXPECT_EQ(library.find(asked)->name, "pre") << asked;
    EXPECT_EQ(library.find(asked).asked(), "pre") << "one name in configurations and results: " << asked;
  }
  EXPECT_EQ(library.find("Peri-LN")->name, "peri");
}

// Tables and reports print titles, so any of them may come back as a name, spaces and commas included.
TEST(SchemeNames, EveryTitleOfTheCatalogueIsAName) {
  const SchemeLibrary library;
  for (const char* kind : {"", "conv", "gcn", "condition"}) {
    ASSERT_FALSE(catalogue(kind).empty()) << kind;
    for (const Scheme& scheme : catalogue(kind)) {
      for (const std::string& asked : {scheme.title, scheme.title.substr(0, scheme.title.find(" ("))}) {
        EXPECT_EQ(library.find(asked)->name, scheme.name) << asked;
        EXPECT_EQ(library.find(asked).asked(), scheme.name) << asked;
      }
    }
  }
  EXPECT_EQ(library.find("layernorm scaling")->name, "lns");
}

TEST_F(UserFolder, TitlesOfFilesAreNamesAsWell) {
  write("of_a_user.toml", "title = \"My own scheme\"\nsublayer = \"x + f(x)\"\n");
  write("damaged.toml", "title = \n");
  EXPECT_EQ(library().find("my own scheme")->name, "of_a_user");
  EXPECT_EQ(library().find("my own scheme").asked(), "of_a_user");
}

TEST_F(UserFolder, WinsOverTheCatalogueAndSaysSo) {
  write("post.toml", "title = \"My own\"\nsublayer = \"x + f(x)\"\n");
  const SchemeEntry found = library().locate("post");
  EXPECT_EQ(found->title, "My own");
  EXPECT_TRUE(found.replaces);
  EXPECT_EQ(library().all().size(), catalogue().size());
}

TEST_F(UserFolder, ACopyOfABuiltInSchemeReplacesNothing) {
  fs::copy_file(fs::path(test::kSourceFolder) / "schemes" / "post.toml", folder_ / "post.toml");
  EXPECT_FALSE(library().locate("post").replaces);
  EXPECT_EQ(library().find("post")->title, "Post-LN");
}

TEST_F(UserFolder, WhatIsPutFirstComesBeforeAllElseAndWhatIsPutLastAfterIt) {
  using Rank = SchemeLibrary::Rank;
  write("of_a_user.toml", "title = \"Now\"\nsublayer = \"x + f(x)\"\n");
  const std::string then = "title = \"Then\"\nsublayer = \"x + f(norm(x))\"\n";
  SchemeLibrary reader = library(), heir = library();
  reader.put("of_a_user", then, Rank::first);
  heir.put("of_a_user", then, Rank::last);
  EXPECT_EQ(reader.find("of_a_user")->title, "Then");
  EXPECT_EQ(reader.find("of_a_user")->name, "of_a_user");
  EXPECT_EQ(reader.find("of_a_user")->text, then);
  EXPECT_EQ(heir.find("of_a_user")->title, "Now");
  EXPECT_EQ(library().find("of_a_user")->title, "Now") << "libraries know nothing of one another";
  heir.put("gone", then, Rank::last);
  heir.put("a/b.toml", then, Rank::last);
  EXPECT_EQ(heir.find("gone")->title, "Then");
  EXPECT_EQ(heir.find("a/b.toml")->name, "b");
  EXPECT_NE(library().find("pre")->text.find("Pre-LN"), std::string::npos);
  EXPECT_EQ(library().find("x + f(x)")->text, "");
}

TEST_F(UserFolder, WhatANameMeansIsDecidedOnce) {
  write("of_a_user.toml", "title = \"Before\"\nsublayer = \"x + f(x)\"\n");
  const SchemeLibrary once = library();
  const SchemeChoice chosen = once.find("of_a_user");
  write("of_a_user.toml", "title = \"After\"\nsublayer = \"x + f(x)\"\n");
  EXPECT_EQ(chosen->title, "Before");
  EXPECT_EQ(once.find("of_a_user").shared(), chosen.shared());
  EXPECT_EQ(SchemeLibrary(once).find("of_a_user").shared(), chosen.shared()) << "copies share it";
  EXPECT_EQ(library().find("of_a_user")->title, "After");
  SchemeLibrary other = library();
  other.put(chosen);
  EXPECT_EQ(other.find(" of_a_user").shared(), chosen.shared()) << "what was resolved elsewhere comes first";
}

TEST_F(UserFolder, ABadFileIsReportedWhenUsedOrListedAndIsNotInTheWay) {
  const fs::path file = write("broken.toml", "sublayer = \"x + g(\"\n");
  EXPECT_EQ(library().find("pre")->title, "Pre-LN");
  const std::string error = error_of([] { library().find("broken"); });
  EXPECT_EQ(error, file.string() +
                       ": scheme 'broken', sublayer: expected a value but found the end of the formula\n"
                       "  x + g(\n"
                       "        ^");
  const std::vector<SchemeEntry> all = library().all();
  ASSERT_NE(entry(all, "broken"), nullptr);
  EXPECT_FALSE(entry(all, "broken")->scheme);
  EXPECT_EQ(entry(all, "broken")->error, error);
}

TEST_F(UserFolder, NearestNamesIncludeTheUsersOwn) {
  write("my_scheme.toml", "sublayer = \"x + f(x)\"\n");
  EXPECT_EQ(error_of([] { library().find("my_schme"); }),
            "there is no scheme named 'my_schme' (did you mean 'my_scheme'?)");
}

TEST_F(UserFolder, AFolderThatIsNotThereIsAnEntryOfTheList) {
  setenv("NORMA_SCHEMES", (folder_.path().string() + "::" + folder_.path().string() + "/absent").c_str(), 1);
  write("of_a_user.toml", "sublayer = \"x + f(x)\"\n");
  EXPECT_EQ(library().folders().size(), 2u) << "an empty part of the list is no folder";
  EXPECT_EQ(library().find("of_a_user")->name, "of_a_user");
  const std::vector<SchemeEntry> all = library().all();
  const SchemeEntry* absent = entry(all, folder_.path().string() + "/absent");
  ASSERT_NE(absent, nullptr);
  EXPECT_NE(absent->error.find("cannot read the folder of schemes"), std::string::npos);
}

TEST_F(UserFolder, TheFirstFolderWins) {
  fs::create_directories(folder_ / "second");
  write("of_a_user.toml", "title = \"first\"\nsublayer = \"x + f(x)\"\n");
  write("second/of_a_user.toml", "title = \"second\"\nsublayer = \"x + f(x)\"\n");
  setenv("NORMA_SCHEMES", (folder_.path().string() + ":" + folder_.path().string() + "/second").c_str(), 1);
  EXPECT_EQ(library().find("of_a_user")->title, "first");
  SchemeLibrary wider = library();
  wider.add_folder(folder_ / "second");
  EXPECT_EQ(wider.find("of_a_user")->title, "second") << "what is added comes before the environment";
}

TEST_F(UserFolder, FilesAreFoundByTheirPath) {
  const fs::path file = write("elsewhere.toml", "title = \"Here\"\nsublayer = \"x + f(x)\"\n");
  unsetenv("NORMA_SCHEMES");
  EXPECT_EQ(library().find(file.string())->title, "Here");
  EXPECT_EQ(error_of([&] { library().find(file.string() + ".toml"); }),
            fmt::format("{0}.toml: there is no scheme file '{0}.toml'", file.string()));
}

TEST_F(UserFolder, HugeFilesAreRefused) {
  const fs::path file = write("huge.toml", std::string(kLargestSchemeFile + 1, '#'));
  EXPECT_NE(error_of([&] { library().find(file.string()); }).find("a scheme file has at most 1048576"),
            std::string::npos);
}

TEST(Schemes, AChoiceIsAValue) {
  const SchemeChoice pre = "pre", formula = "x + f(norm(x))/2";
  const SchemeChoice copy = pre;  // NOLINT: that a copy shares is what is tested
  EXPECT_EQ(copy.shared(), pre.shared());
  EXPECT_EQ(pre.shared(), SchemeChoice("pre").shared()) << "the catalogue is there once";
  EXPECT_EQ(formula.asked(), "x + f(norm(x))/2");
  EXPECT_EQ(formula->name, "formula");
  EXPECT_TRUE(pre == "pre");
}

TEST(Schemes, AddingAFolderThatIsNotThereFails) {
  EXPECT_NE(error_of([] { SchemeLibrary().add_folder("/no/such/folder"); }).find("cannot read the folder of schemes"),
            std::string::npos);
}

TEST(Schemes, WhatIsNoNameIsAFormula) {
  EXPECT_EQ(SchemeLibrary().find("x + f(norm(x))/sqrt(l)")->name, "formula");
  EXPECT_EQ(error_of([] { SchemeLibrary().find("pots"); }), "there is no scheme named 'pots' (did you mean 'post'?)");
}

TEST(Schemes, AFormulaSpansWhatItsBranchesSay) {
  const Scheme layer = *SchemeLibrary().find("y = norm(x); x + attn(y) + ffn(y)");
  ASSERT_NE(layer.formula("layer"), nullptr);
  EXPECT_EQ(layer.formula("sublayer"), nullptr);
  EXPECT_NE(SchemeLibrary().find("x + f(norm(x))")->formula("sublayer"), nullptr);
  EXPECT_NE(SchemeLibrary().find("2*x")->formula("sublayer"), nullptr) << "without a branch";
  EXPECT_EQ(error_of([] { SchemeLibrary().find("x + attn(x) + f(x)"); }),
            "a formula for every sublayer calls f, one for a whole layer attn and ffn; this one calls attn as well\n"
            "  x + attn(x) + f(x)\n"
            "                ^^^^");
  EXPECT_NE(error_of([] { SchemeLibrary().find("x + attn(x) + cross(x) + ffn(x)"); }).find("as cross_layer and layer"),
            std::string::npos);
}

TEST(Schemes, AFormulaIsItsOwnTitle) {
  EXPECT_EQ(SchemeLibrary().find("x + f(norm(x))/2")->title, "x + f(norm(x))/2");
  const std::string title = SchemeLibrary().find("x + " + std::string(40, '1') + "*f(norm(x)) + 0*f(norm(x))")->title;
  EXPECT_EQ(title, "x + " + std::string(40, '1') + "*f(norm(x)) +...");
  EXPECT_EQ(title.size(), 60u);
}

TEST(Schemes, SpacesAroundANameDoNotCount) {
  EXPECT_EQ(SchemeLibrary().find(" pre ")->name, "pre");
  EXPECT_EQ(SchemeLibrary().find("pre\n")->title, "Pre-LN");
  SchemeLibrary library;
  library.put("of_a_user ", "title = \"Kept\"\nsublayer = \"x + f(x)\"\n", SchemeLibrary::Rank::last);
  EXPECT_EQ(library.find(" of_a_user")->title, "Kept");
}

}  // namespace
}  // namespace norma
