// Where names of schemes mean something. A name is resolved once, at the edge of a program; a SchemeChoice travels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "norma/schemes/scheme.h"

namespace norma {

// What comes with norma, sorted by name: for any stack, or for stacks of one kind of branch ("conv") alone.
const std::vector<Scheme>& catalogue(std::string_view kind = {});

// A scheme in a configuration: what was asked for, and what that meant when it was resolved. Copies share it.
class SchemeChoice {
 public:
  // Of a SchemeLibrary without folders: a name of the catalogue, a file, or a formula. Throws as SchemeLibrary::find.
  SchemeChoice(const char* asked);
  SchemeChoice(const std::string& asked);
  SchemeChoice(std::string asked, std::shared_ptr<const Scheme> scheme)
      : asked_(std::move(asked)), scheme_(std::move(scheme)) {}

  const std::string& asked() const { return asked_; }  // a name, a file, or a formula
  const Scheme& operator*() const { return *scheme_; }
  const Scheme* operator->() const { return scheme_.get(); }
  const std::shared_ptr<const Scheme>& shared() const { return scheme_; }
  bool operator==(std::string_view asked) const { return asked_ == asked; }

 private:
  std::string asked_;
  std::shared_ptr<const Scheme> scheme_;  // never null
};

// A scheme that can be asked for by name, wherever it comes from.
struct SchemeEntry {
  std::string name = {};
  std::filesystem::path file = {};                 // empty: it comes with norma, or a run has kept it
  std::shared_ptr<const Scheme> scheme = nullptr;  // null: the file cannot be used
  std::string error = {};                          // why not, with the file's name and, in a formula, a caret
  bool replaces = false;                           // a user's scheme in the place of a different one of norma's
  const Scheme* operator->() const { return scheme.get(); }
};

// Longer files are refused.
constexpr std::uintmax_t kLargestSchemeFile = 1 << 20;  // bytes

// What a name means is decided once: a library gives the same scheme however often it is asked, whatever happens to
// files meanwhile, and so do its copies until one of them is changed. From any thread, while nobody changes it.
class SchemeLibrary {
 public:
  SchemeLibrary();                        // the catalogue, files and formulas
  static SchemeLibrary of_environment();  // and the folders of NORMA_SCHEMES, separated by colons

  // A folder of *.toml files, looked into before all others. It must exist.
  void add_folder(const std::filesystem::path& folder);
  const std::vector<std::filesystem::path>& folders() const { return folders_; }  // the last one added first

  // A text that a name or a file means: before anything else has a say, or only where nothing else has the name.
  enum class Rank { first, last };
  void put(const std::string& asked, std::string toml, Rank rank);
  // What has been resolved elsewhere, before everything.
  void put(const SchemeChoice& choice);

  // What was put first; a file ("path/to/mine.toml"); a name or title, in folders, then in the catalogue; what was put
  // last; or a formula, which anything else is read as: of a scheme called "formula" the `layer` if it calls attn or
  // ffn, otherwise the `sublayer`. Spaces around it do not count. Throws Error: the file's mistake, or the nearest
  // known name.
  SchemeEntry locate(std::string_view name_file_or_formula) const;
  // The same, as a configuration holds it: a name is the scheme's own, however it was written ("Pre-LN" is "pre").
  SchemeChoice find(const std::string& name_file_or_formula) const;

  // All of folders and catalogue, sorted by name. A bad file, or a folder that cannot be read, is an entry with an
  // error.
  std::vector<SchemeEntry> all() const;

 private:
  struct Found;
  using Texts = std::map<std::string, std::string, std::less<>>;

  SchemeEntry resolve(std::string_view asked) const;
  bool has(std::string_view asked) const;  // a file or a name, good or bad; what was put does not count
  SchemeEntry named(std::string_view name) const;

  std::vector<std::filesystem::path> folders_;
  std::map<std::string, std::shared_ptr<const Scheme>, std::less<>> chosen_;
  Texts first_, last_;
  std::shared_ptr<Found> found_;  // what has been resolved
};

}  // namespace norma
