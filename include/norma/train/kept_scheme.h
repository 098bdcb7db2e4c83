// Schemes that run directories keep (scheme.toml), so that a run needs neither the folder its scheme came from nor that
// nothing has changed there.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "norma/schemes/catalogue.h"

namespace norma {

// What a run of this scheme keeps: its TOML, or nothing for a formula, which the configuration holds itself.
std::string scheme_to_keep(const std::string& name_file_or_formula);

// For whoever reads a run: its own scheme counts as long as the result lives. Null where the run keeps none.
std::shared_ptr<const KeptScheme> scheme_of_run(const std::filesystem::path& run);

// For whoever goes on with a run: the same, but only when nothing else has the name, so that a scheme that has changed
// is noticed.
std::shared_ptr<const KeptScheme> scheme_to_resume(const std::filesystem::path& run);

// The first thing in which two scheme files build different models, as "sublayer was ..., now it is ..."; titles,
// sources, comments and layout do not count.
std::optional<std::string> scheme_difference(std::string_view before, std::string_view now);

}  // namespace norma
