// What `norma inspect` was told, and what follows from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "norma/lab/inspect.h"
#include "norma/train/data.h"

namespace norma::cli {

struct InspectVerb {
  std::vector<std::string> schemes;
  Family family = "decoder";
  std::string depths, sizes, norm, task = "random", text, out, report;
  std::int64_t layers = 0, width = 0, heads = 4, hidden = 0, batch = 4, time = 64, vocabulary = 256;
  int batches = 8, threads = 0;
  std::string seeds = "3", only, run, device = "auto";
  SchemeLibrary library = SchemeLibrary::of_environment();
  bool json = false, quiet = false;
};

// Schemes, depths, width and norm where nothing is said about them: those that the study of the family has, of its
// schemes the first two.
void settle_choices(InspectVerb& verb);

std::vector<std::string> split(const std::string& list);  // at commas
std::vector<std::int64_t> parse_depths(const std::string& list);
bool reads_random(const InspectVerb& verb);
ModelConfig model_of(const InspectVerb& verb);
std::shared_ptr<const Source> open_data(const InspectVerb& verb, const ModelConfig& model);
std::string repeat_command(const InspectVerb& verb);

// Where a page goes without being asked for: into the directory of the run, beside its report, or beside --out.
std::filesystem::path page_unasked(const InspectVerb& verb);

}  // namespace norma::cli
