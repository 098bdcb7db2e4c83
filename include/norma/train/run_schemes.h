// A run directory is a library: it keeps its scheme (scheme.toml), so that a run needs neither the folder its scheme
// came from nor that nothing has changed there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "norma/schemes/library.h"

namespace norma {

class RunView;

// As its configuration has it.
std::string scheme_named_in(const RunView& run);

// For whoever reads a run: its own scheme comes first. The others as they are where it keeps none, or there is no run.
SchemeLibrary library_of_run(const std::filesystem::path& run, SchemeLibrary others = {});

// For whoever goes on with a run: its own scheme only where nothing else has the name, so that one that has changed is
// noticed.
SchemeLibrary library_to_resume(const std::filesystem::path& run, SchemeLibrary others = {});

// The first thing in which two scheme files build different models, as "sublayer was ..., now it is ..."; titles,
// sources, comments and layout do not count.
std::optional<std::string> scheme_difference(std::string_view before, std::string_view now);

}  // namespace norma
