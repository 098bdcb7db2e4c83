#include "lab/diagnose/signs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/models/model.h"

namespace norma {
namespace {

constexpr std::size_t kLastFew = 5;

double median_of(std::vector<double> values) {
  if (values.empty()) return kNaN;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// "layers.3", "encoder.layers.0": not the tables, the head or what follows the stack.
bool is_layer(std::string_view site) {
  const std::size_t dot = site.rfind('.');
  return dot != std::string_view::npos && dot + 1 < site.size() &&
         std::all_of(site.begin() + static_cast<std::ptrdiff_t>(dot) + 1, site.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// Mean square of what a parameter starts with; 0 for one that is not drawn.
double initial_square(const ParameterSpec& spec) {
  const double own = spec.init.value * spec.init.value;
  double gains = 0, columns = 0;
  for (const ColumnBlock& block : spec.blocks) {
    gains += static_cast<double>(block.columns) * block.gain * block.gain;
    columns += static_cast<double>(block.columns);
  }
  const double gain = columns > 0 ? gains / columns : 1;
  switch (spec.init.kind) {
    case Init::Kind::normal: return own * gain;
    case Init::Kind::uniform: return own * gain / 3;
    default: return 0;
  }
}

struct WeightSum {
  double elements = 0, squares = 0;
  double rms() const { return std::sqrt(squares / elements); }
};

// By layer, of the matrices that start at random: gains and biases would hide how large they are.
std::map<std::string, WeightSum> starting_weights(const ModelConfig& config) {
  Graph graph;
  const Model model = build_model(graph, config);
  std::map<std::string, WeightSum> layers;
  for (const ParameterSpec& spec : model.parameters) {
    const double square = initial_square(spec);
    if (square == 0) continue;
    for (std::size_t dot = spec.name.find('.'); dot != std::string::npos; dot = spec.name.find('.', dot + 1)) {
      const std::string site = spec.name.substr(0, dot);
      if (!is_layer(site)) continue;
      const double elements = static_cast<double>(graph.find(spec.name).shape().elements());
      layers[site].elements += elements;
      layers[site].squares += elements * square;
      break;
    }
  }
  return layers;
}

void keep_larger(SignReading& reading, double value, std::int64_t step, const std::string& site) {
  if (std::isfinite(value) && (!reading.there() || value > reading.value)) reading = {value, step, site};
}

// The largest of a kind in one record.
SignReading largest_of(const StepRecord& record, std::string_view kind) {
  SignReading largest;
  for (const ProbeValue& probe : record.probes) {
    if (probe.kind == kind) keep_larger(largest, probe.value, record.step, probe.site);
  }
  return largest;
}

SignReading reach_of(const StepRecord& record) {
  SignReading smallest;
  double largest = 0;
  for (const ProbeValue& probe : record.probes) {
    if (probe.kind != "gradient_rms" || !is_layer(probe.site) || !std::isfinite(probe.value)) continue;
    largest = std::max(largest, probe.value);
    if (!smallest.there() || probe.value < smallest.value) smallest = {probe.value, record.step, probe.site};
  }
  if (!(largest > 0)) return {};
  smallest.value /= largest;
  return smallest;
}

// The share of attention layers that look at a single token; none where no attention was watched.
std::optional<double> saturation_of(const StepRecord& record, std::int64_t time) {
  std::map<std::string, std::pair<double, double>> layers;  // logit, entropy
  for (const ProbeValue& probe : record.probes) {
    if (probe.kind == "logit_max") layers[probe.site].first = probe.value;
    if (probe.kind == "entropy") layers[probe.site].second = probe.value;
  }
  if (layers.empty() || time < 2) return std::nullopt;
  const double most = std::log(static_cast<double>(time));
  const auto saturated = std::count_if(layers.begin(), layers.end(), [&](const auto& layer) {
    return layer.second.first >= kSaturatedLogit && layer.second.second < kSaturatedEntropy * most;
  });
  return static_cast<double>(saturated) / static_cast<double>(layers.size());
}

void read_trend(const std::vector<StepRecord>& steps, Signs& signs) {
  std::vector<double> x, y;
  for (std::size_t i = steps.size() / 2; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].loss)) continue;
    x.push_back(static_cast<double>(steps[i].step));
    y.push_back(steps[i].loss);
  }
  const double n = static_cast<double>(x.size());
  if (n < 6) {  // too few for an error of the slope
    signs.falling = std::isfinite(signs.last_loss) && steps.back().loss < signs.first_loss;
    if (steps.back().step > steps.front().step)
      signs.slope =
          (steps.back().loss - signs.first_loss) / static_cast<double>(steps.back().step - steps.front().step);
    return;
  }
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0, rest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mean_x += x[i] / n, mean_y += y[i] / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  signs.slope = xy / xx;
  for (std::size_t i = 0; i < x.size(); ++i) rest += std::pow(y[i] - mean_y - signs.slope * (x[i] - mean_x), 2);
  const double error = std::sqrt(rest / (n - 2) / xx);
  signs.slope_t = error > 0 ? signs.slope / error : 0;
  signs.falling = signs.slope_t < -3;
}

void read_losses(const std::vector<StepRecord>& steps, Signs& signs) {
  signs.last_step = steps.back().step;
  if (steps.front().step == 1) signs.first_loss = steps.front().loss;
  std::vector<double> last;  // of few records all but the first, which is where it came from
  for (std::size_t i = steps.size() > 1 ? std::max(steps.size(), kLastFew + 1) - kLastFew : 0; i < steps.size(); ++i)
    if (std::isfinite(steps[i].loss)) last.push_back(steps[i].loss);
  signs.last_loss = median_of(std::move(last));
  read_trend(steps, signs);
}

void read_updates(const std::vector<StepRecord>& steps, const ModelConfig& model, Signs& signs) {
  const std::map<std::string, WeightSum> layers = starting_weights(model);
  WeightSum all;
  for (const auto& [site, sum] : layers) all = {all.elements + sum.elements, all.squares + sum.squares};
  if (all.elements == 0) return;
  signs.weights_rms = all.rms();
  double moved = 0;
  std::int64_t before = 0;
  for (const StepRecord& record : steps) {
    double update = 0, gradient = 0, count = 0;
    for (const ProbeValue& probe : record.probes) {
      const auto layer = layers.find(probe.site);
      if (layer == layers.end()) continue;
      if (probe.kind == "gradient_rms") {
        gradient += probe.value * probe.value;
        keep_larger(signs.layer_gradient_most, probe.value, record.step, probe.site);
      }
      if (probe.kind != "update_rms") continue;
      keep_larger(signs.largest_update, probe.value / layer->second.rms(), record.step, probe.site);
      update += probe.value;
      ++count;
    }
    if (count == 0) continue;
    if (!std::isfinite(signs.first_gradient)) signs.first_gradient = std::sqrt(gradient / count);
    moved += update / count * static_cast<double>(record.step - before);
    before = record.step;
  }
  if (signs.largest_update.there()) signs.moved = moved / signs.weights_rms;
}

void read_gradients(const std::vector<StepRecord>& steps, Signs& signs) {
  std::vector<SignReading> reaches;
  for (const StepRecord& record : steps) {
    keep_larger(signs.gradient_most, record.gradient_norm, record.step, "");
    const SignReading reach = reach_of(record);
    if (!reach.there()) continue;
    if (reaches.empty()) signs.reach_at_start = reach;
    if (reach.value >= kReachLost) signs.reach_lost = 0;
    if (reach.value < kReachLost && signs.reach_lost == 0) signs.reach_lost = record.step;
    reaches.push_back(reach);
  }
  signs.gradient_at_start = {steps.front().gradient_norm, steps.front().step, ""};
  if (reaches.empty()) return;
  const auto late = reaches.begin() + static_cast<std::ptrdiff_t>(reaches.size() / 2);
  std::sort(late, reaches.end(), [](const SignReading& a, const SignReading& b) { return a.value < b.value; });
  signs.reach_late = *(late + (reaches.end() - late) / 2);
}

void read_stream(const std::vector<StepRecord>& steps, std::int64_t time, Signs& signs) {
  std::vector<double> saturation;
  for (const StepRecord& record : steps) {
    signs.probed = signs.probed || !record.probes.empty();
    const SignReading logit = largest_of(record, "logit_max"), stream = largest_of(record, "stream_rms");
    keep_larger(signs.logit_most, logit.value, logit.step, logit.site);
    keep_larger(signs.stream_most, stream.value, stream.step, stream.site);
    if (record.step == 1) {
      signs.logit_at_start = logit;
      signs.stream_at_start = stream;
    }
    if (const auto share = saturation_of(record, time)) {
      if (record.step == 1) signs.saturated_at_start = *share;
      saturation.push_back(*share);
    }
    for (const ProbeValue& probe : record.probes) {
      if (signs.bad_probe.there() || std::isfinite(probe.value)) continue;
      signs.bad_probe = {probe.value, record.step, probe.kind + " of " + probe.site};
    }
  }
  const auto half = static_cast<std::ptrdiff_t>(saturation.size() / 2);
  if (!saturation.empty()) signs.saturated_late = median_of({saturation.begin() + half, saturation.end()});
}

}  // namespace

Signs read_signs(const RunHistory& run, const MemberHistory& member) {
  Signs signs;
  if (member.steps.empty()) return signs;
  read_losses(member.steps, signs);
  read_updates(member.steps, run.config.model, signs);
  read_gradients(member.steps, signs);
  read_stream(member.steps, run.config.model.time, signs);
  return signs;
}

}  // namespace norma
