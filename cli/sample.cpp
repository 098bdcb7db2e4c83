// norma sample: samples of a trained denoiser, as a picture and as numbers that say how good they are.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_end.h"
#include "cli/run_page.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/data/source.h"
#include "norma/lab/sample_quality.h"
#include "norma/report/picture.h"
#include "norma/store/atomic_file.h"
#include "norma/store/folder.h"
#include "norma/store/run_directory.h"
#include "norma/train/denoise.h"

namespace norma::cli {
namespace {

struct SampleCommand {
  std::string run, out, judge, device, sampler = "ddim";
  SchemeLibrary schemes = SchemeLibrary::of_environment();
  DenoiseOptions options = {};
  int member = 0, label = -1;
  double eta = -1;
  std::int64_t threads = 0;
  bool json = false;
};

struct SampleQuality {
  std::optional<MixtureDistance> mixture = {};
  std::optional<FrechetQuality> frechet = {};
};

void settle_sampler(SampleCommand& command) {
  const std::string known[] = {"ddim", "ddpm"};
  if (command.sampler != "ddim" && command.sampler != "ddpm")
    fail("there is no sampler '{}'{}; expected ddim or ddpm", command.sampler, did_you_mean(command.sampler, known));
  if (command.sampler == "ddpm" && command.eta >= 0 && command.eta != 1)
    fail("--sampler ddpm is --eta 1, but --eta {} was given; expected --sampler ddim beside it", command.eta);
  command.options.eta = command.sampler == "ddpm" ? 1 : command.eta < 0 ? 0 : command.eta;
  if (command.label >= 0) command.options.label = command.label;
}

TrainedModel open_model(const SampleCommand& command, const std::string& run, Progress& progress) {
  TrainedModel model = open_trained(run, command.member, command.schemes);
  for (const std::string& warning : model.warnings) progress.warn(warning);
  if (command.threads > 0) model.config.train.threads = command.threads;
  if (!command.device.empty()) model.config.train.device = parse_device(command.device);
  return model;
}

SampleQuality quality_of(const SampleCommand& command, const TrainedModel& model, const DenoisedSamples& samples,
                         Progress& progress) {
  SampleQuality quality;
  if (!command.judge.empty()) {
    SampleCommand first = command;
    first.member = 0;
    const TrainedModel judge = open_model(first, command.judge, progress);
    progress.at("looking at samples through the classifier's eyes");
    quality.frechet = frechet_quality(samples, judge, command.options.seed);
    return quality;
  }
  if (reads_files(model.config.data.task) || samples.count() < 2) return quality;
  const std::shared_ptr<const Source> source = open_data(model);
  if (source->mixture() == nullptr || command.options.label || command.options.guidance != 1) return quality;
  progress.at("comparing samples with the distribution");
  quality.mixture = distance_to_mixture(samples.values, *source->mixture(), command.options.seed);
  return quality;
}

nlohmann::ordered_json json_of(const Resampled& number) {
  return {{"value", number.value}, {"low", number.low}, {"high", number.high}};
}

void print_json(const SampleCommand& command, const DenoisedSamples& samples, const SampleQuality& quality,
                const std::string& picture) {
  nlohmann::ordered_json result = {{"run", command.run},
                                   {"member", command.member},
                                   {"samples", samples.count()},
                                   {"height", samples.height},
                                   {"width", samples.width},
                                   {"channels", samples.channels},
                                   {"steps", command.options.steps},
                                   {"eta", command.options.eta},
                                   {"guidance", command.options.guidance},
                                   {"seed", command.options.seed},
                                   {"picture", picture}};
  if (quality.mixture) {
    const MixtureDistance& m = *quality.mixture;
    result["mixture"] = {{"energy_distance", json_of(m.energy)},
                         {"floor", m.floor},
                         {"mean_error", m.mean_error},
                         {"variance_error", m.variance_error},
                         {"empty_centres", m.empty_centres}};
  }
  if (quality.frechet) {
    const FrechetQuality& f = *quality.frechet;
    result["frechet"] = {
        {"classifier", command.judge},
        {"distance", json_of(f.distance)},
        {"plain", f.plain},
        {"floor", f.floor},
        {"held_out", f.held_out},
        {"features", f.features},
        {"agreement", std::isnan(f.agreement) ? nlohmann::ordered_json() : nlohmann::ordered_json(f.agreement)}};
  }
  write_json(result.dump(2) + "\n");
}

void print_words(const SampleCommand& command, const DenoisedSamples& samples, const SampleQuality& quality,
                 const std::string& picture) {
  print("{} samples of {} x {} x {} in {} steps, eta {}, guidance {}: {}\n", samples.count(), samples.height,
        samples.width, samples.channels, command.options.steps, command.options.eta, command.options.guidance, picture);
  if (quality.mixture) {
    const MixtureDistance& m = *quality.mixture;
    print("energy distance to the true distribution {:.4f} (95 %: {:.4f} to {:.4f}); draws of it are {:.4f} apart\n",
          m.energy.value, m.energy.low, m.energy.high, m.floor);
    print("a coordinate's mean is off by at most {:.3f}, its variance by {:.3f}; {} centre{} without a sample\n",
          m.mean_error, m.variance_error, m.empty_centres, m.empty_centres == 1 ? "" : "s");
  }
  if (quality.frechet) {
    const FrechetQuality& f = *quality.frechet;
    print(
        "Frechet distance {:.3f} (95 %: {:.3f} to {:.3f}), of {} samples from {} held-out images, in {} features of "
        "the "
        "classifier '{}', which norma trained itself\n"
        "{:.3f} before what so few samples add is taken off; halves of the held-out images are {:.3f} apart, likewise "
        "before\n",
        f.distance.value, f.distance.low, f.distance.high, f.samples, f.held_out, f.features, command.judge, f.plain,
        f.floor);
    if (!std::isnan(f.agreement))
      print("the classifier takes {:.1f} % of the samples for the class that was asked for\n", 100 * f.agreement);
  }
}

void run_sample(SampleCommand command) {
  settle_sampler(command);
  Progress progress(command.json);
  progress.at("reading the model");
  const TrainedModel model = open_model(command, command.run, progress);
  const DenoisedSamples samples = sample_denoiser(model, command.options, [&](std::int64_t done, std::int64_t all) {
    progress.at(fmt::format("step {} of {}", done, all));
  });
  const SampleQuality quality = quality_of(command, model, samples, progress);
  const bool folder = kind_of(command.run) == PathKind::folder;
  const std::filesystem::path own = std::filesystem::path(command.run) / kSamplesName;
  const std::string png =
      samples_png({samples.count(), samples.height, samples.width, samples.channels}, samples.values);
  if (!folder && command.out.empty())
    fail("'{}' is a checkpoint; expected --out, the picture's file, beside it", command.run);
  const std::string picture = command.out.empty() ? own.string() : command.out;
  write_atomically(picture, png);
  // The run's page shows the last samples.
  if (folder) {
    if (picture != own.string()) write_atomically(own, png);
    progress.at("writing the run's page");
    if (RunView(command.run).is_done()) close_run(command.run, command.schemes, PageOfRun::anew);
  }
  progress.clear();
  command.json ? print_json(command, samples, quality, picture) : print_words(command, samples, quality, picture);
}

}  // namespace

void add_sample(CLI::App& app, int&) {
  const auto command = std::make_shared<SampleCommand>();
  DenoiseOptions& options = command->options;
  CLI::App* verb = app.add_subcommand("sample", "Draw samples from a trained diffusion model");
  verb->add_option("run", command->run, "Run directory or checkpoint")->required()->type_name(kRun);
  verb->add_option("--steps", options.steps, "From noise to sample; at most diffusion.timesteps")
      ->capture_default_str();
  verb->add_option("--sampler", command->sampler, "ddim, or ddpm, which adds noise in every step")
      ->type_name("ddim|ddpm")
      ->capture_default_str();
  verb->add_option("--eta", command->eta, "Share of DDPM's noise that ddim adds, 0 to 1; without it none");
  verb->add_option("--guidance", options.guidance, "1: as trained; above: further towards the class; 0: no class")
      ->capture_default_str();
  verb->add_option("--class", command->label, "All of this one, from 0; without it classes in turn");
  verb->add_option("--count", options.count, "Samples")->capture_default_str();
  verb->add_option("--seed", options.seed, "Of the noise")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, kLargestSeed));
  verb->add_option("--clip", options.clip, "Bound of the clean sample behind each step; 0: none")
      ->capture_default_str();
  verb->add_option("--out", command->out, "PNG file; without it samples.png in the run")->type_name(kFile);
  verb->add_option("--judge", command->judge, "A classifier of the same images, for a Frechet distance")
      ->type_name(kRun);
  add_trained_options(*verb, command->member, command->threads, command->device);
  verb->add_flag("--json", command->json, "Print JSON");
  add_schemes_dir(*verb, command->schemes);
  verb->callback([command] { run_sample(*command); });
}

}  // namespace norma::cli
