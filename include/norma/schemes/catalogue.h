// The schemes that come with norma, compiled in from schemes/*.toml, and those that a user keeps in folders beside
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/schemes/scheme.h"

namespace norma {

const std::vector<Scheme>& catalogue();  // what comes with norma, sorted by name

// Folders of *.toml files that this process looks into before the catalogue: those added here, the last one first, then
// those of the environment variable NORMA_SCHEMES (separated by colons). A folder that is added must exist.
void add_scheme_folder(const std::filesystem::path& folder);
std::vector<std::filesystem::path> scheme_folders();

// A scheme that can be asked for by name, wherever it comes from.
struct SchemeEntry {
  std::string name;
  std::filesystem::path file;    // empty: it comes with norma
  std::optional<Scheme> scheme;  // none: the file cannot be used
  std::string error;             // why not, with the file's name and, in a formula, a caret
  bool replaces = false;         // a user's scheme in the place of a different one that comes with norma
  std::string text = {};         // the TOML it is read from; empty: a formula
  const Scheme* operator->() const { return &*scheme; }
};

// All of them, sorted by name. A bad file, or a folder of NORMA_SCHEMES that cannot be read, is an entry with an error.
std::vector<SchemeEntry> all_schemes();

// While such an object lives, a name or a file means this text, whatever folders and catalogue hold: the scheme of a
// run that is kept in its directory. Of several with one name the last one made counts. From any thread.
class KeptScheme {
 public:
  KeptScheme(const std::string& asked, std::string text);
  KeptScheme(const KeptScheme&) = delete;
  KeptScheme& operator=(const KeptScheme&) = delete;
  ~KeptScheme();

 private:
  std::uint64_t number_;
};

// Whether folders, the catalogue or a file have something, good or bad, under this name; what is kept does not count.
bool has_scheme(std::string_view name_or_file);

// Longer files are refused.
constexpr std::uintmax_t kLargestSchemeFile = 1 << 20;  // bytes

// One scheme: one that is kept under this name; a file ("path/to/mine.toml"); a name, in the user's folders and then in
// the catalogue; or a formula, which anything else is read as: of a scheme called "formula" the `layer` if it calls
// attn or ffn, otherwise the `sublayer`. Spaces around it do not count. Throws Error: the file's mistake, or the
// nearest known name.
SchemeEntry locate_scheme(std::string_view name_file_or_formula);
Scheme find_scheme(std::string_view name_file_or_formula);  // the same, only the scheme

}  // namespace norma
