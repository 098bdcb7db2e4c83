// norma check: logits, loss and every gradient for given weights and tokens, as safetensors.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "norma/train/check.h"

namespace norma::cli {
namespace {

struct CheckOptions {
  std::string config, weights, tokens;
  std::string out = "check.safetensors";
  SchemeLibrary schemes = SchemeLibrary::of_environment();
  bool json = false;
};

void run_check(const CheckOptions& options, const std::vector<std::string>& extras) {
  CheckRequest request{.config = options.config.empty()
                                     ? RunConfig()
                                     : read_config(config_file(options.config, options.schemes), options.schemes),
                       .weights = {},
                       .tokens = {},
                       .out = options.out};
  apply_overrides(request.config, extras, options.schemes);
  if (!options.weights.empty()) request.weights = options.weights;
  if (!options.tokens.empty()) request.tokens = options.tokens;
  const CheckResult result = [&] {
    Progress progress(options.json);
    progress.at("computing logits, loss and gradients");
    return check_model(request);
  }();
  if (options.json) {
    const nlohmann::json all = {
        {"loss", result.loss}, {"parameters", result.parameters}, {"tensors", result.tensors}, {"file", options.out}};
    write_json(all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    print("loss {:.8g}\n{} tensors of a model with {} parameters written to {}\n", result.loss, result.tensors.size(),
          result.parameters, options.out);
  }
}

}  // namespace

void add_check(CLI::App& app, int&) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = app.add_subcommand("check", "Write logits, loss and every gradient, to compare with other code");
  verb->add_option("config", options->config, "TOML file with the model; without it the embedded default run")
      ->type_name(kFile);
  verb->add_option("--weights", options->weights, "safetensors by parameter name; without it the initial weights")
      ->type_name(kFile);
  verb->add_option("--tokens", options->tokens, "safetensors with tokens and targets; without it the first batch")
      ->type_name(kFile);
  verb->add_option("--out", options->out, "File to write")->capture_default_str()->type_name(kFile);
  verb->add_flag("--json", options->json, "Print what was written as JSON");
  add_schemes_dir(*verb, options->schemes);
  add_run_options(*verb);
  add_model_family(*verb);
  add_device(*verb);
  take_keys(*verb, "Any key of the configuration: --model.layers=2 --model.width=64");
  verb->callback([options, verb] { run_check(*options, overrides_of(*verb)); });
}

}  // namespace norma::cli
