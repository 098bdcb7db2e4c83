// norma schemes [name, file or formula]: the catalogue, and one scheme explained at a given depth and width.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/explanation.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"

namespace norma::cli {
namespace {

using Json = nlohmann::json;

struct Listed {
  SchemeEntry entry;
  std::optional<std::string> against = {};  // why the family refuses it
};

std::vector<Listed> schemes_for(const SchemesOptions& options) {
  std::vector<SchemeEntry> entries = options.library.all();
  for (const BranchKind* const kind : options.about.family->sites(ModelConfig()).back().kinds()) {
    for (const Scheme& scheme : catalogue(kind->key)) entries.push_back(options.library.locate(scheme.name));
  }
  const auto first_of_others = std::ssize(entries);
  for (const Scheme& scheme : catalogue("condition")) entries.push_back(options.library.locate(scheme.name));
  ExplainOptions about = options.about;
  if (!options.norm.empty()) about.norm = norm(options.norm).kind;
  std::vector<Listed> all;
  for (SchemeEntry& entry : entries) {
    Listed& one = all.emplace_back(Listed{.entry = std::move(entry)});
    if (!one.entry.scheme) continue;
    about.scheme = SchemeChoice(one.entry.name, one.entry.scheme);
    one.against = refusal(about);
    if (one.against && std::ssize(all) > first_of_others) all.pop_back();  // few families have a condition
  }
  return all;
}

void print_listed_json(const std::vector<Listed>& listed) {
  Json all = Json::array();
  for (const auto& [entry, against] : listed) {
    Json one = entry.scheme ? summary(*entry.scheme) : Json{{"name", entry.name}, {"error", entry.error}};
    if (!entry.file.empty()) one["file"] = entry.file.string();
    if (against) one["refused"] = *against;
    all.push_back(std::move(one));
  }
  write_json(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_listed(const std::vector<Listed>& listed, const Family& family) {
  std::size_t width = 0;
  for (const auto& [entry, against] : listed) {
    if (entry.scheme) width = std::max(width, entry.name.size());
  }
  for (const auto& [entry, against] : listed) {
    if (!entry.scheme || against) continue;
    print("{:<{}}  {}\n{:<{}}  {}\n", entry.name, width, entry->title, "", width, headline(*entry.scheme));
    if (!entry.file.empty()) print("{:<{}}  {}\n", "", width, note_on(entry));
  }
  if (std::ranges::any_of(listed, [](const Listed& one) { return one.against.has_value(); }))
    print("\nRefused by the family {} with its usual sizes:\n", family->name);
  for (const auto& [entry, against] : listed) {
    if (against) print("{:<{}}  {}\n", entry.name, width, against->substr(0, against->find('\n')));
  }
  for (const auto& [entry, against] : listed) {
    if (!entry.scheme) note("norma: {}\n", entry.error);
  }
}

void list_schemes(const SchemesOptions& options) {
  if (!options.svg.empty()) fail("--svg draws one scheme; name it: norma schemes NAME --svg '{}'", options.svg);
  const std::vector<Listed> listed = schemes_for(options);
  options.json ? print_listed_json(listed) : print_listed(listed, options.about.family);
}

void write_svg(const std::string& path, const std::string& svg) {
  std::error_code unknown;
  const std::filesystem::file_status before = std::filesystem::status(path, unknown);
  if (!std::filesystem::exists(before) || std::filesystem::is_regular_file(before)) {
    write_atomically(path, svg);
    return;
  }
  std::ofstream file(path);  // a pipe or a device, which nothing may be renamed over
  file << svg;
  if (!file.flush()) fail("cannot write the diagram to '{}'", path);
}

void explain_one(const SchemesOptions& options) {
  const SchemeEntry entry = options.library.locate(options.name);
  if (options.layer < 0 || options.layer > options.about.layers)
    fail("there is no layer {} in a stack of {}", options.layer, options.about.layers);
  ModelConfig model;
  model.layers = options.about.layers;
  const DiagramOptions drawing{.layers = options.about.layers,
                               .layer = options.layer,
                               .width = options.about.width,
                               .heads = options.about.heads,
                               .branches = options.about.family->sites(model).back().kinds()};
  if (!options.svg.empty()) write_svg(options.svg, diagram_svg(*entry.scheme, drawing));
  const Explanation said = [&] {
    Progress progress(options.json);
    progress.at(fmt::format("predicting what {} does at {} layers", options.name, options.about.depths.back()));
    ExplainOptions about = options.about;
    about.scheme = options.library.find(options.name);
    if (!options.norm.empty()) about.norm = norm(options.norm).kind;
    return explain(about);
  }();
  options.json ? print_json(options, entry, said) : print_text(options, entry, said, drawing);
}

}  // namespace

void add_schemes(CLI::App& app, int&) {
  const auto options = std::make_shared<SchemesOptions>();
  CLI::App* verb = app.add_subcommand("schemes", "The catalogue of schemes, or one scheme explained");
  verb->add_option("scheme,--scheme", options->name,
                   "Name of a scheme, a file, or a formula such as \"x + f(norm(x))\"")
      ->type_name(kScheme);
  add_family(*verb, options->about.family);
  verb->add_option("--layers,--depth", options->about.layers, "Depth; of an encoder-decoder, of each stack")
      ->check(CLI::Range(1, 100000));
  verb->add_option("--width", options->about.width, "Width of the stream")->check(CLI::Range(1, 1 << 20));
  verb->add_option("--heads", options->about.heads, "Attention heads")->check(CLI::Range(1, 1 << 16));
  verb->add_option("--norm", options->norm, "What `norm` means in a formula (layer, or what the family's study has)");
  verb->add_option("--depths", options->about.depths, "Of the theory's exponents: as for norma inspect (6,12,24)")
      ->delimiter(',')
      ->type_name(kList)
      ->check(CLI::Range(1, 100000));
  verb->add_option("--theory-width", options->about.theory_width,
                   "Of the theory's model: --width of norma inspect (128; of convolutions that of their study)")
      ->check(CLI::Range(1, 1 << 16));
  verb->add_option("--theory-time", options->about.theory_time, "Of the theory's model: --time of norma inspect")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  verb->add_option("--layer", options->layer, "Which layer to draw, where layers are wired differently");
  verb->add_option("--svg", options->svg, "Write the diagram to this file")->type_name(kFile);
  verb->add_flag("--json", options->json, "Print JSON");
  add_schemes_dir(*verb, options->library);
  verb->callback([options] { options->name.empty() ? list_schemes(*options) : explain_one(*options); });
}

}  // namespace norma::cli
