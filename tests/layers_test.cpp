// Dependencies point one way. The compiler finds only the headers of folders that a target declares
// (cmake/NormaTarget.cmake); here is what it cannot refuse, and that its include paths are what they should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "places.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = test::kSourceFolder, kBuild = test::kBuildFolder;

using Folders = std::map<std::string, std::set<std::string>>;

// folder -> folders that its target names: `norma_library(theory ... DEPENDS norma::models ... SOURCES ...)`.
Folders declared_folders() {
  Folders declared;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "src")) {
    std::ifstream file(entry.path() / "CMakeLists.txt");
    std::string word, library;
    for (bool depends = false; file >> word;) {
      if (word.starts_with("norma_library(")) {
        library = word.substr(word.find('(') + 1);
        declared[library];
      }
      if (word == "DEPENDS" || word == "SHARES" || word == "SOURCES") depends = word == "DEPENDS" && !library.empty();
      if (depends && word.starts_with("norma::")) declared[library].insert(word.substr(7));
    }
  }
  return declared;
}

// folder -> folders whose headers it may include, besides its own: those that it names, and those that these see.
Folders allowed_includes() {
  Folders allowed = declared_folders();
  for (bool grew = true; grew;) {
    grew = false;
    for (auto& [folder, seen] : allowed) {
      for (const std::string& near : std::set<std::string>(seen)) {
        for (const std::string& far : allowed[near]) grew = seen.insert(far).second || grew;
      }
    }
  }
  return allowed;
}

// What the CMake file of a folder says about targets: from target_ to the closing bracket.
std::string target_commands(const std::string& folder) {
  std::ifstream file(kRoot / "src" / folder / "CMakeLists.txt");
  std::string commands;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = inside || line.starts_with("target_");
    if (inside) commands += line + "\n";
    inside = inside && !line.substr(0, line.find("  #")).ends_with(")");
  }
  return commands;
}

struct Include {
  std::string file;  // from the root
  int line;
  std::string from;     // layer of the file
  std::string to;       // layer of the header, "" for a header that is not ours
  std::string header;   // as written
  bool in_public_tree;  // the file is under include/
};

// `a/b.h` of `#include "a/b.h"` or `#include <a/b.h>`; "" for any other line.
std::string included_header(const std::string& line) {
  const std::size_t directive = line.find_first_not_of(" \t");
  if (directive == std::string::npos || line[directive] != '#') return "";
  const std::size_t word = line.find_first_not_of(" \t", directive + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return "";
  const std::size_t open = line.find_first_of("<\"", word);
  const std::size_t close = open == std::string::npos ? open : line.find_first_of(">\"", open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

std::vector<Include> read_includes() {
  std::vector<Include> includes;
  for (const char* tree : {"include/norma", "src"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / tree)) {
      static const std::set<std::string> sources = {".h", ".cpp", ".cu", ".cuh"};
      if (!entry.is_regular_file() || !sources.contains(entry.path().extension().string())) continue;
      const fs::path inside = entry.path().lexically_relative(kRoot / tree);
      std::ifstream file(entry.path());
      std::string text;
      for (int line = 1; std::getline(file, text); ++line) {
        const fs::path header = included_header(text);
        if (header.empty()) continue;
        fs::path ours = *header.begin() == "norma" ? header.lexically_relative("norma") : header;
        const bool exists = fs::exists(kRoot / "include" / header) || fs::exists(kRoot / "src" / header);
        const std::string from = std::distance(inside.begin(), inside.end()) > 1 ? inside.begin()->string() : "";
        includes.push_back({entry.path().lexically_relative(kRoot).string(), line, from,
                            exists ? ours.begin()->string() : "", header.string(),
                            std::string(tree).starts_with("include")});
      }
    }
  }
  return includes;
}

TEST(Layers, TargetsNameFoldersOneWay) {
  const Folders allowed = allowed_includes();
  ASSERT_GE(allowed.size(), 14u) << "the test does not understand the CMake files";
  EXPECT_TRUE(allowed.at("core").empty());
  for (const auto& [folder, seen] : allowed) {
    EXPECT_FALSE(seen.contains(folder)) << folder << " needs itself, by way of others";
    for (const std::string& other : seen)
      EXPECT_TRUE(fs::is_directory(kRoot / "src" / other)) << folder << ": " << other;
  }
  EXPECT_TRUE(allowed.at("theory").contains("models") && !allowed.at("models").contains("theory"));
}

// The folders that stand after -I in a command of the compiler.
std::vector<std::string> include_paths(const std::string& command) {
  std::vector<std::string> paths;
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    if (word.starts_with("-I")) paths.push_back(word.substr(2));
    if (word == "-isystem" && words >> word) paths.push_back(word);
  }
  return paths;
}

// The folder of src/ whose target a command compiles for: "-o src/graph/CMakeFiles/norma_graph.dir/plan.cpp.o".
std::string folder_of(const std::string& command) {
  const std::size_t target = command.find("/CMakeFiles/norma_"), folder = command.rfind(" src/", target);
  if (target == std::string::npos || folder == std::string::npos) return "";
  return command.substr(folder + 5, target - folder - 5);
}

TEST(Layers, TargetsSeeOnlyTheFoldersThatTheyDeclare) {
  std::ifstream file(kBuild / "compile_commands.json");
  if (!file) GTEST_SKIP() << "this build keeps no record of its commands";
  const Folders allowed = allowed_includes();
  std::set<std::string> compiled;
  for (std::string line; std::getline(file, line);) {
    const std::string folder = folder_of(line);
    if (line.find("\"command\"") == std::string::npos || !allowed.contains(folder)) continue;
    compiled.insert(folder);
    std::set<std::string> expected = {folder + "/src", folder + "/include"};
    for (const std::string& other : allowed.at(folder)) {
      expected.insert(other + "/include");
      expected.insert(other + "/shared/src");
    }
    std::set<std::string> seen;
    for (const std::string& path : include_paths(line)) {
      EXPECT_FALSE(path == (kRoot / "src").string() || path == (kRoot / "include").string() || path == kRoot)
          << folder << " sees all of " << path;
      const std::string roots = (kBuild / "roots").string() + "/";
      if (path.starts_with(roots)) seen.insert(path.substr(roots.size()));
    }
    EXPECT_EQ(seen, expected) << folder;
  }
  EXPECT_EQ(compiled.size(), allowed.size());
}

TEST(Layers, NoIncludeLeavesItsFolderSideways) {
  const std::vector<Include> includes = read_includes();
  ASSERT_GT(includes.size(), 50u) << "the test looks in the wrong place: " << kRoot;
  for (const Include& include : includes)
    EXPECT_EQ(include.header.find(".."), std::string::npos) << include.file << ":" << include.line;
}

TEST(Layers, PublicHeadersIncludeOnlyPublicHeaders) {
  for (const Include& include : read_includes()) {
    if (!include.in_public_tree) continue;
    const bool private_header = !include.to.empty() && !include.header.starts_with("norma/");
    EXPECT_FALSE(private_header) << include.file << ":" << include.line << ": " << include.header
                                 << " is not installed";
  }
}

// Where all libraries lie in /usr, a header is found without the target that says where it is; elsewhere it is not.
TEST(Layers, TargetsLinkTheLibrariesWhoseHeadersTheyInclude) {
  const std::map<std::string, std::string> libraries = {{"jpeglib.h", "Jpeg_INCLUDE_DIR"},
                                                        {"png.h", "Png_INCLUDE_DIR"},
                                                        {"sentencepiece_", "SentencePiece_INCLUDE_DIR"},
                                                        {"sqlite3.h", "SQLite3_INCLUDE_DIR"},
                                                        {"nlohmann/", "nlohmann_json::nlohmann_json"},
                                                        {"toml++/", "tomlplusplus::tomlplusplus"},
                                                        {"zlib.h", "ZLIB_INCLUDE_DIRS"}};
  std::set<std::string> used;
  for (const Include& include : read_includes()) {
    if (!include.to.empty()) continue;
    for (const auto& [header, library] : libraries) {
      if (!include.header.starts_with(header)) continue;
      used.insert(header);
      EXPECT_TRUE(target_commands(include.from).find(library) != std::string::npos)
          << include.file << ":" << include.line << " includes " << include.header << ", but " << include.from
          << "/CMakeLists.txt gives its target no " << library;
    }
  }
  EXPECT_EQ(used.size(), libraries.size()) << "the test does not understand the sources";
}

TEST(Layers, CudaHeadersStayInCudaFiles) {
  const auto is_cuda = [](const std::string& header) {
    const auto starts = [&](const char* prefix) { return header.starts_with(prefix); };
    return starts("cuda") || starts("cublas") || starts("cudnn") || starts("nccl") || starts("cub/") ||
           starts("thrust/");
  };
  for (const Include& include : read_includes()) {
    const bool cuda_file =
        include.file.ends_with(".cu") || include.file.ends_with(".cuh") || include.file.starts_with("src/device/cuda/");
    if (cuda_file || !include.to.empty()) continue;
    EXPECT_FALSE(is_cuda(include.header))
        << include.file << ":" << include.line << ": " << include.header << " belongs in a .cu file or device/cuda";
  }
}

}  // namespace
}  // namespace norma
