// The table of instruments: what each measures, in words, and how its readings follow from the analyses.
#include <algorithm>
#include <array>

#include "norma/core/error.h"
#include "norma/lab/activations.h"
#include "norma/lab/amplification.h"
#include "norma/lab/gradient.h"
#include "norma/lab/inspect.h"
#include "norma/lab/jacobian.h"
#include "norma/lab/sharpness.h"
#include "norma/lab/smoothing.h"
#include "norma/train/step.h"

namespace norma {
namespace {

// Those of the layer's parameters, weights before what every layer has.
std::vector<std::string> roles_of(const GradientProfile& profile, const std::string& layer) {
  std::vector<std::string> roles;
  const auto add = [&](const std::string& role) {
    if (std::ranges::find(roles, role) == roles.end()) roles.push_back(role);
  };
  constexpr std::array<std::string_view, 3> kEverywhere = {"norm", "bias", "learned"};
  for (const ParameterGradient& parameter : profile.parameters) {
    if (parameter.layer == layer && std::ranges::find(kEverywhere, parameter.role) == kEverywhere.end())
      add(parameter.role);
  }
  for (const std::string_view role : kEverywhere) add(std::string(role));
  return roles;
}

std::vector<Reading> read_gradient(const Subject& subject, int batches) {
  const GradientProfile profile = measure_gradient(subject, batches);
  const StackSites stack = last_stack(subject.model);
  const BranchKind& closing = stack.closing();
  const std::string ending = "." + closing.scope + "." + closing.last_weight();
  const std::string last = stack.site(stack.layers - 1, closing) + "." + closing.last_weight();
  Reading mean{.name = "gradient", .value = profile.at(last).of_mean};
  Reading batch{.name = "gradient_batch", .value = profile.at(last).per_batch};
  Reading layer{.name = "gradient_layer", .value = profile.of_layer(layer_of(last))};
  for (const ParameterGradient& parameter : profile.parameters) {
    if (!parameter.name.ends_with(ending)) continue;
    const std::string site = parameter.layer + "." + closing.scope;
    mean.sites.push_back(site);
    mean.profile.push_back(parameter.of_mean);
    batch.sites.push_back(site);
    batch.profile.push_back(parameter.per_batch);
    layer.sites.push_back(parameter.layer);
    layer.profile.push_back(profile.of_layer(parameter.layer));
  }
  Reading roles{.name = "gradient_role", .value = profile.of_layer(layer_of(last), profile.at(last).role)};
  for (const std::string& role : roles_of(profile, layer_of(last))) {
    std::vector<double> norm = profile.of_layer(layer_of(last), role);
    if (norm[0] == 0) continue;
    roles.sites.push_back(role);
    roles.profile.push_back(std::move(norm));
  }
  return {mean, batch, layer, roles};
}

Instrument gradient_instrument(int batches) {
  return {
      .name = "gradient",
      .cost = 3.0 * batches,
      .analyses = {{.name = "gradient",
                    .title = "Gradient of the last layer's closing weight",
                    .about = fmt::format("Frobenius norm of the gradient averaged over {} batches, at the last "
                                         "layer by depth and at every layer: of the second feed-forward matrix, of "
                                         "a block of convolutions its last kernel.",
                                         batches),
                    .source = "Xiong et al. 2020"},
                   {.name = "gradient_batch",
                    .title = "The same for single batches",
                    .about = "Mean Frobenius norm of the gradients of single batches: signal and noise together.",
                    .source = "Xiong et al. 2020"},
                   {.name = "gradient_layer",
                    .title = "Gradient of all weights of the last layer",
                    .about = "Norm over all parameters of a layer of the gradient averaged over batches.",
                    .source = "Xiong et al. 2020"},
                   {.name = "gradient_role",
                    .title = "Gradient of the last layer by role",
                    .about = "The weights of the last layer's closing branch by depth; at the deepest, every role of "
                             "its parameters.",
                    .source = "Xiong et al. 2020"}},
      .measure = [batches](const Subject& subject) { return read_gradient(subject, batches); }};
}

Reading along(const char* name, const std::vector<std::string>& sites, const SiteValues& profile) {
  return {.name = name, .value = profile.back(), .sites = sites, .profile = profile};
}

std::vector<Reading> read_activations(const Subject& subject) {
  const Activations found = measure_activations(subject);
  std::vector<Reading> readings = {
      along("stream", found.sites, found.stream_rms), along("branch_share", found.sites, found.branch_share),
      along("angle", found.sites, found.angle),       along("influence", found.layers, found.influence),
      along("massive", found.sites, found.massive),   along("kurtosis", found.sites, found.kurtosis)};
  if (!found.attention.empty()) {
    readings.push_back(along("attention_entropy", found.attention, found.entropy));
    readings.push_back(along("attention_logit", found.attention, found.logit_max));
  }
  return readings;
}

Instrument activation_instrument() {
  const auto info = [](const char* name, const char* title, const char* about, const char* source, ExponentOver over,
                       bool log) {
    return AnalysisInfo{.name = name, .title = title, .log = log, .about = about, .source = source, .exponent = over};
  };
  return {
      .name = "stream",
      .cost = 2,
      .analyses = {info("stream", "Rms of the stream after the last sublayer",
                        "Root mean square of the stream after each sublayer; the exponent is that of its growth "
                        "along the sublayers of the deepest model, of an encoder-decoder along its decoder's.",
                        "Xiong et al. 2020", ExponentOver::profile, true),
                   info("branch_share", "Branch over stream at the last sublayer",
                        "Rms of what a formula adds over the rms of what it adds it to: of b f(..) over that of a x, "
                        "before any norm of the sum.",
                        "Sun et al. 2025", ExponentOver::profile, true),
                   info("angle", "Angle between the stream before and after the last sublayer",
                        "Of each token's vectors, over pi, mean over tokens.", "Gromov et al. 2024",
                        ExponentOver::profile, true),
                   info("influence", "Block influence of the last layer",
                        "1 - mean cosine of the stream before and after a layer.", "Men et al. 2024",
                        ExponentOver::profile, true),
                   info("massive", "Largest over median magnitude of the stream",
                        "Within the first sample, after each sublayer, zeros aside.", "Sun et al. 2024",
                        ExponentOver::none, true),
                   info("kurtosis", "Kurtosis of the stream",
                        "Of the first sample, after each sublayer; 3 is a "
                        "normal distribution.",
                        "Sun et al. 2024", ExponentOver::none, true),
                   info("attention_entropy", "Entropy of attention in the last layer",
                        "Nats, mean over some queries of all heads; near 0 attention has collapsed onto single "
                        "tokens.",
                        "Zhai et al. 2023", ExponentOver::none, false),
                   info("attention_logit", "Largest attention logit in the last layer",
                        "Largest scaled score over some queries of all heads.", "Wortsman et al. 2023",
                        ExponentOver::none, true)},
      .measure = read_activations};
}

std::vector<Reading> read_smoothing(const Subject& subject) {
  if (!reads_graph(subject.model)) return {};
  const Smoothing found = measure_smoothing(subject);
  Reading energy = along("dirichlet", found.sites, found.energy);
  for (const std::vector<double>& site : found.linear_energy) {
    double mean = 0;
    for (const double value : site) mean += value / static_cast<double>(site.size());
    energy.theory.push_back(mean);
  }
  const std::vector<double> second(found.energy.front().size(), found.second_eigenvalue);
  return {energy, along("mean_distance", found.sites, found.distance), {.name = "second_eigenvalue", .value = second}};
}

Instrument smoothing_instrument() {
  return {.name = "smoothing",
          .cost = 2,
          .analyses = {{.name = "dirichlet",
                        .title = "Dirichlet energy of the stream over its squared length",
                        .about = "Sum over edges of |x[i]/sqrt(d[i]) - x[j]/sqrt(d[j])|^2 over |x|^2, from the "
                                 "embedding on: near 0 nodes differ by their degrees alone. The theory is that of "
                                 "linear layers, f(x) or x + f(x), on this graph.",
                        .source = "Cai, Wang 2020",
                        .exponent = ExponentOver::none},
                       {.name = "mean_distance",
                        .title = "Mean average distance of nodes (MAD)",
                        .about = "Mean over pairs of nodes of 1 - cosine of their streams: near 0 all point one way.",
                        .source = "Chen et al. 2020",
                        .exponent = ExponentOver::none},
                       {.name = "second_eigenvalue",
                        .title = "Second largest eigenvalue of the normalised adjacency",
                        .log = false,
                        .about = "By size, of the graph itself, below the 1 that every connected part has: what one "
                                 "linear layer leaves of the differences within a part, at most.",
                        .source = "Oono, Suzuki 2020",
                        .exponent = ExponentOver::none}},
          .measure = read_smoothing};
}

Instrument amplification_instrument() {
  return {.name = "amplification",
          .cost = 3,
          .analyses = {{.name = "amplification",
                        .title = "Amplification: squared change of the output per position",
                        .x = "sublayers",
                        .about = "Every weight matrix of the layers is changed by -1e-4 sign(normal), the batch stays; "
                                 "squared change of the normalised output, summed over channels, mean over tokens.",
                        .source = "Liu et al. 2020"}},
          .measure = [](const Subject& subject) {
            const Amplification found = measure_amplification(subject);
            return std::vector<Reading>{{"amplification", found.output, found.sites, found.profile}};
          }};
}

Instrument update_instrument() {
  const auto info = [](const char* name, const char* title, const char* about) {
    return AnalysisInfo{.name = name, .title = title, .about = about, .source = "Wang et al. 2022 (DeepNet)"};
  };
  return {.name = "update",
          .cost = 12,
          .analyses = {info("update_sgd", "First step of SGD: rms change of the output",
                            "One step at learning rate 1e-3 of the layers' weight matrices; the output is normalised."),
                       info("update_sign", "First step of Adam: rms change of the output",
                            "One step of 1e-4 sign(gradient) of the layers' weight matrices."),
                       info("update_sgd_all", "First step of SGD, all parameters",
                            "The same with norms, biases, learned values and embeddings."),
                       info("update_sign_all", "First step of Adam, all parameters",
                            "The same with norms, biases, learned values and embeddings.")},
          .measure = [](const Subject& subject) {
            FirstStep found = measure_first_step(subject);
            return std::vector<Reading>{{"update_sgd", found.sgd},
                                        {"update_sign", found.sign},
                                        {"update_sgd_all", found.sgd_all},
                                        {"update_sign_all", found.sign_all}};
          }};
}

Reading read_jacobian(const char* name, const Subject& subject, StackEnd end) {
  return {.name = name, .value = measure_isometry(subject, end), .histogram = measure_singular_values(subject, end)};
}

Instrument jacobian_instrument() {
  return {
      .name = "jacobian",
      .cost = 300,
      .analyses = {{.name = "jacobian",
                    .title = "Mean squared singular value of the stack's Jacobian",
                    .about = "E |J^T v|^2 / |v|^2 over random v, from the embedding to before the final formula; and "
                             "how singular values are distributed in the first sample, all or by projections.",
                    .source = "Bachlechner et al. 2020 (ReZero)"},
                   {.name = "jacobian_final",
                    .title = "The same with the final formula",
                    .about = "From the embedding to what the head reads.",
                    .source = "Bachlechner et al. 2020 (ReZero)"}},
      .measure =
          [](const Subject& subject) {
            std::vector<Reading> readings;
            const std::pair<const char*, StackEnd> ends[] = {{"jacobian", StackEnd::before_final},
                                                             {"jacobian_final", StackEnd::after_final}};
            for (const auto& [name, end] : ends) {
              if (why_no_jacobian(subject.model, end).empty()) readings.push_back(read_jacobian(name, subject, end));
            }
            return readings;
          },
      .on_request = true};
}

Instrument sharpness_instrument(int batches) {
  const auto info = [](const char* name, const char* title, const char* about) {
    return AnalysisInfo{.name = name, .title = title, .about = about, .source = "Cohen et al. 2021, 2022"};
  };
  return {
      .name = "sharpness",
      .cost = 400,
      .analyses =
          {info("sharpness", "Sharpness",
                "Largest eigenvalue of the Hessian on one batch, by Lanczos iterations on differences of gradients."),
           info("sharpness_adam", "Sharpness as Adam sees it",
                "Largest eigenvalue of the Hessian preconditioned by Adam's second moment."),
           info("stable_lr_sgd", "Largest stable learning rate of gradient descent", "2 / sharpness."),
           info("stable_lr_adam", "Largest stable learning rate of Adam",
                "38 / preconditioned sharpness, at beta1 = 0.9.")},
      .measure =
          [batches](const Subject& subject) {
            const Sharpness found = measure_sharpness(subject, {.batches = batches});
            return std::vector<Reading>{{"sharpness", found.plain},
                                        {"sharpness_adam", found.preconditioned},
                                        {"stable_lr_sgd", found.largest_sgd_lr},
                                        {"stable_lr_adam", found.largest_adam_lr}};
          },
      .on_request = true};
}

}  // namespace

std::vector<Instrument> instruments(int batches) {
  return {gradient_instrument(batches), activation_instrument(), smoothing_instrument(),
          amplification_instrument(),   update_instrument(),     jacobian_instrument(),
          sharpness_instrument(batches)};
}

}  // namespace norma
