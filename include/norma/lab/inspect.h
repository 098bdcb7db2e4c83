// The analyses together: schemes by depths by seeds, each reading turned into estimates, profiles and exponents.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/findings.h"
#include "norma/lab/jacobian.h"
#include "norma/lab/subject.h"
#include "norma/models/model.h"

namespace norma {

// What one analysis read off one model: a number per member and, where it has sites, a number per site and member.
struct Reading {
  std::string name;           // of the analysis
  std::vector<double> value;  // by member
  std::vector<std::string> sites = {};
  std::vector<std::vector<double>> profile = {};  // [site][member]
  std::vector<double> theory = {};                // by site, where the analysis brings its own; empty: none
  std::optional<SingularValueHistogram> histogram = {};
};

// A law as an exponent: of the value over depths, or of the profile along the deepest model.
enum class ExponentOver { depth, profile, none };

struct AnalysisInfo {
  std::string name, title, x = "layers", unit = "";
  bool log = true;
  std::string about, source;
  ExponentOver exponent = ExponentOver::depth;
};

// A part of the laboratory: one pass over a model that gives one or several readings.
struct Instrument {
  std::string name;  // what --only says
  double cost = 1;   // in forward passes, about
  std::vector<AnalysisInfo> analyses;
  std::function<std::vector<Reading>(const Subject&)> measure;
  bool on_request = false;  // takes minutes: only where it is asked for by name, or all are
};

// The model that theories of initialisation speak of: its stream enters at rms 1, and so do the logits of a normalised
// stream. `norma inspect` measures it, and `norma schemes` says what the theory predicts of it. Its norm is that of the
// family's study; residual networks have one stage. Width 0: 128, or where the study gives a width of its own, which
// that of convolutions is, that one.
ModelConfig initial_model(Family family = "decoder", std::int64_t width = 0);
inline const std::vector<std::int64_t> kInitialDepths = {6, 12, 24};

// More networks until the law of an analysis over depths is settled as far as their scatter goes, or there are `most`.
struct SettledLaw {
  std::string analysis;
  double width = 0.2;     // of the interval of the exponent
  std::size_t most = 32;  // networks
  // No more are begun that would not be measured by then, at the pace of those before.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Told before each measurement what is next, and what share of the work is done.
using Progress = std::function<void(double done, std::string_view what)>;

// Told after each measurement what is known so far, and how many of the measurements have been made.
using PartialFindings = std::function<void(Findings found, std::size_t made, std::size_t all)>;

struct InspectOptions {
  std::vector<SchemeChoice> schemes = {"pre"};
  ModelConfig model = {};  // its scheme and layers are replaced
  std::vector<std::int64_t> depths = kInitialDepths;
  std::vector<std::uint64_t> seeds = {1, 2, 3};
  std::vector<std::string> only = {};  // names of instruments, or "all"; empty: all that are not on request
  int batches = 8;                     // that gradients are averaged over
  int threads = 0;
  Device device = Device::automatic;
  std::optional<SettledLaw> settle = {};  // beyond `seeds`; the next ones
  bool theory = false;                    // whether predictions are put beside what was measured
  // Opens the data for a batch of the given shape.
  std::function<std::shared_ptr<const Source>(const ModelConfig&)> open = nullptr;
  PartialFindings measured = nullptr;
};

std::vector<Instrument> instruments(int batches);
// And "depth", which is no instrument: what the layers of a trained model are worth; and "all".
std::vector<std::string> instrument_names();

// The model's scheme at its depth and width: formulas, diagram, parameters. Needs a vocabulary.
SchemeSummary summarise_scheme(const ModelConfig& model);

// Throws Error for unknown instruments and depths before anything is measured.
Findings inspect(const InspectOptions& options, const Progress& progress = nullptr);

// The same for one model as it is, and what its layers are worth; of a deep one only where "depth" is asked for.
Findings inspect(const Subject& subject, const std::vector<std::string>& only, int batches,
                 const Progress& progress = nullptr, const PartialFindings& measured = nullptr);

// All analyses of depth. What does not apply to the model is left out, with a note.
DepthFinding inspect_depth(const Subject& subject, std::vector<std::string>& notes, const Progress& progress = nullptr);

}  // namespace norma
