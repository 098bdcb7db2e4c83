#include "norma/schemes/catalogue.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "norma/core/names.h"
#include "schemes/embedded.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

struct Folders {
  std::mutex mutex;
  std::vector<fs::path> added;  // the last one first
};

Folders& folders() {
  static Folders all;
  return all;
}

struct Kept {
  std::uint64_t number;
  std::string asked, text;
};

struct KeptSchemes {
  std::mutex mutex;
  std::uint64_t made = 0;
  std::vector<Kept> all;
};

KeptSchemes& kept_schemes() {
  static KeptSchemes schemes;
  return schemes;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<std::string> kept_text(std::string_view asked) {
  const std::lock_guard lock(kept_schemes().mutex);
  const std::vector<Kept>& all = kept_schemes().all;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Kept& one) { return one.asked == asked; });
  return found == all.rend() ? std::nullopt : std::optional(found->text);
}

// A file is called by its stem, however it was asked for.
std::string scheme_name(std::string_view asked) {
  return asked.ends_with(".toml") ? fs::path(asked).stem().string() : std::string(asked);
}

std::vector<fs::path> folders_of_environment() {
  std::vector<fs::path> found;
  const char* variable = std::getenv("NORMA_SCHEMES");
  std::string_view text = variable == nullptr ? "" : variable;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) found.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string read_file(const fs::path& file) {
  std::error_code failed;
  if (!fs::is_regular_file(file, failed)) fail("there is no scheme file '{}'", file.string());
  const std::uintmax_t size = fs::file_size(file, failed);
  if (failed) fail("cannot read '{}': {}", file.string(), failed.message());
  if (size > kLargestSchemeFile)
    fail("'{}' has {} bytes; a scheme file has at most {}", file.string(), size, kLargestSchemeFile);
  std::ifstream stream(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream) fail("cannot read '{}'", file.string());
  return text;
}

const EmbeddedScheme* embedded_named(std::string_view name) {
  for (const EmbeddedScheme& scheme : embedded_schemes()) {
    if (scheme.name == name) return &scheme;
  }
  return nullptr;
}

SchemeEntry read_entry(const fs::path& file) {
  SchemeEntry entry{.name = file.stem().string(), .file = file, .scheme = std::nullopt, .error = ""};
  try {
    const std::string text = read_file(file);
    entry.scheme = parse_scheme(entry.name, text);
    entry.text = text;
    const EmbeddedScheme* same = embedded_named(entry.name);
    entry.replaces = same != nullptr && same->text != text;
  } catch (const Error& error) {
    entry.error = fmt::format("{}: {}", file.string(), error.what());
  }
  return entry;
}

// Files of one folder; throws where it cannot be read.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    if (at->path().extension() == ".toml") files.push_back(at->path());
  }
  if (failed) fail("cannot read the folder of schemes '{}': {}", folder.string(), failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_plain_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; });
}

// The first call of one of these functions, or null.
const Expression* call_of(const Expression& e, std::initializer_list<std::string_view> functions) {
  if (e.kind == Expression::Kind::call && std::find(functions.begin(), functions.end(), e.name) != functions.end())
    return &e;
  for (const ExpressionPtr& child : e.children) {
    if (const Expression* found = call_of(*child, functions)) return found;
  }
  return nullptr;
}

const Expression* call_of(const Formula& formula, std::initializer_list<std::string_view> functions) {
  for (const Statement& statement : formula.statements) {
    if (const Expression* found = call_of(*statement.value, functions)) return found;
  }
  return nullptr;
}

// Which formula of a scheme this is, by the branches that it calls.
const char* key_of(const Formula& formula) {
  const Expression *whole = call_of(formula, {"attn", "ffn", "cross"}), *sublayer = call_of(formula, {"f"});
  if (whole != nullptr && sublayer != nullptr) {
    throw FormulaError(formula.text, sublayer->span,
                       fmt::format("a formula for every sublayer calls f, one for a whole layer attn and ffn; this one "
                                   "calls {} as well",
                                   whole->name));
  }
  if (const Expression* cross = call_of(formula, {"cross"})) {
    throw FormulaError(formula.text, cross->span,
                       "the decoder of an encoder-decoder calls cross, and its encoder needs a formula without; give "
                       "both in a file, as cross_layer and layer");
  }
  return whole != nullptr ? "layer" : "sublayer";
}

// The formula itself, on one line of bounded length.
std::string title_of(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string title(text);
  std::replace_if(
      title.begin(), title.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (title.size() <= kLongest) return title;
  std::size_t end = kLongest - 3;
  while ((static_cast<unsigned char>(title[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return title.substr(0, end) + "...";
}

Scheme formula_scheme(std::string_view text) {
  Scheme scheme;
  scheme.name = "formula";
  scheme.title = title_of(text);
  Formula formula = parse_formula(text);
  scheme.formulas.emplace(key_of(formula), std::move(formula));
  return scheme;
}

SchemeEntry checked(SchemeEntry entry) {
  if (!entry.scheme) throw Error(entry.error);
  return entry;
}

}  // namespace

const std::vector<Scheme>& catalogue() {
  static const std::vector<Scheme> schemes = [] {
    std::vector<Scheme> all;
    for (const EmbeddedScheme& file : embedded_schemes()) all.push_back(parse_scheme(file.name, file.text));
    std::sort(all.begin(), all.end(), [](const Scheme& a, const Scheme& b) { return a.name < b.name; });
    return all;
  }();
  return schemes;
}

void add_scheme_folder(const fs::path& folder) {
  files_in(folder);
  const std::lock_guard lock(folders().mutex);
  folders().added.insert(folders().added.begin(), folder);
}

std::vector<fs::path> scheme_folders() {
  std::vector<fs::path> all;
  {
    const std::lock_guard lock(folders().mutex);
    all = folders().added;
  }
  for (fs::path& folder : folders_of_environment()) all.push_back(std::move(folder));
  return all;
}

std::vector<SchemeEntry> all_schemes() {
  std::map<std::string, SchemeEntry> entries;
  for (const fs::path& folder : scheme_folders()) {
    try {
      for (const fs::path& file : files_in(folder)) entries.try_emplace(file.stem().string(), read_entry(file));
    } catch (const Error& error) {
      entries.try_emplace(
          folder.string(),
          SchemeEntry{.name = folder.string(), .file = folder, .scheme = std::nullopt, .error = error.what()});
    }
  }
  for (const Scheme& scheme : catalogue())
    entries.try_emplace(scheme.name, SchemeEntry{.name = scheme.name, .file = {}, .scheme = scheme, .error = ""});
  std::vector<SchemeEntry> all;
  for (auto& [name, entry] : entries) all.push_back(std::move(entry));
  return all;
}

KeptScheme::KeptScheme(const std::string& asked, std::string text) {
  const std::lock_guard lock(kept_schemes().mutex);
  number_ = ++kept_schemes().made;
  kept_schemes().all.push_back({number_, std::string(trimmed(asked)), std::move(text)});
}

KeptScheme::~KeptScheme() {
  const std::lock_guard lock(kept_schemes().mutex);
  std::erase_if(kept_schemes().all, [this](const Kept& one) { return one.number == number_; });
}

bool has_scheme(std::string_view name_or_file) {
  const std::string_view asked = trimmed(name_or_file);
  std::error_code failed;
  if (asked.ends_with(".toml")) return fs::exists(fs::path(asked), failed);
  for (const fs::path& folder : scheme_folders()) {
    if (fs::exists(folder / (std::string(asked) + ".toml"), failed)) return true;
  }
  return embedded_named(asked) != nullptr;
}

SchemeEntry locate_scheme(std::string_view name_file_or_formula) {
  const std::string_view asked = trimmed(name_file_or_formula);
  if (std::optional<std::string> text = kept_text(asked)) {
    const std::string name = scheme_name(asked);
    return {.name = name, .file = {}, .scheme = parse_scheme(name, *text), .error = "", .text = std::move(*text)};
  }
  if (asked.ends_with(".toml")) {
    SchemeEntry entry = checked(read_entry(fs::path(asked)));
    entry.replaces = false;  // it was asked for by its file
    return entry;
  }
  if (!is_plain_name(asked)) return {.name = "formula", .file = {}, .scheme = formula_scheme(asked), .error = ""};
  std::vector<std::string> names;
  for (const fs::path& folder : scheme_folders()) {
    const fs::path file = folder / (std::string(asked) + ".toml");
    std::error_code failed;
    if (fs::exists(file, failed)) return checked(read_entry(file));
    try {
      for (const fs::path& other : files_in(folder)) names.push_back(other.stem().string());
    } catch (const Error&) {  // a folder that cannot be read keeps nobody from the others; all_schemes() reports it
    }
  }
  for (const Scheme& scheme : catalogue()) {
    if (scheme.name == asked)
      return {.name = scheme.name,
              .file = {},
              .scheme = scheme,
              .error = "",
              .text = std::string(embedded_named(asked)->text)};
    names.push_back(scheme.name);
  }
  fail("there is no scheme named '{}'{}", asked, did_you_mean(asked, names));
}

Scheme find_scheme(std::string_view name_file_or_formula) { return *locate_scheme(name_file_or_formula).scheme; }

}  // namespace norma
