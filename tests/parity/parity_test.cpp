// Parity with PyTorch: reads the cases that reference.py computed and compares every output and every gradient.
// NORMA_PARITY_DIR names the folder; without it every case is skipped.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/cpu/cpu_session.h"
#include "norma/backends/cpu.h"
#include "norma/core/error.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/models/model.h"
#include "norma/norms/norm.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/convolution.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/linear.h"
#include "norma/ops/modulate.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/time_features.h"
#include "norma/ops/upsample.h"
#include "norma/train/optimiser.h"
#include "parity/graph_cases.h"
#include "parity/sampler_cases.h"
#include "parity/sized_config.h"
#include "plain_plan.h"

namespace norma {
namespace {

using nlohmann::json;
using NamedWires = std::map<std::string, Wire>;

// The files that reference.py wrote, read once.
struct Cases {
  json list = json::array();
  std::vector<char> data;

  static const Cases& get() {
    static const Cases cases = [] {
      Cases result;
      const char* folder = std::getenv("NORMA_PARITY_DIR");
      if (folder == nullptr) return result;
      std::ifstream index(std::string(folder) + "/cases.json"),
          blob(std::string(folder) + "/data.bin", std::ios::binary);
      result.list = json::parse(index).at("cases");
      result.data.assign(std::istreambuf_iterator<char>(blob), {});
      return result;
    }();
    return cases;
  }

  template <typename T>
  std::vector<T> read(const json& tensor) const {
    const std::size_t offset = tensor.at("offset"), bytes = tensor.at("bytes");
    std::vector<T> values(bytes / sizeof(T));
    std::memcpy(values.data(), data.data() + offset, bytes);
    return values;
  }
};

Type type_of(const json& tensor) {
  const std::vector<std::int64_t> dims = tensor.at("shape");
  return {Shape(dims), parse_dtype(tensor.at("dtype").get<std::string>())};
}

// Relative to the largest expected number: both sides round sums of `reduction` terms, whose errors grow like its root;
// chains of a few such sums and the two implementations' different orders take the rest.
double tolerance(const json& test, double largest) {
  if (test.at("attributes").contains("tolerance"))
    return test.at("attributes").at("tolerance").get<double>() * std::max(1.0, largest);
  const double eps = epsilon_of(parse_dtype(test.at("dtype").get<std::string>()));
  return 16 * eps * std::sqrt(test.at("reduction").get<double>()) * std::max(1.0, largest);
}

template <typename T>
void compare(const json& test, const std::string& name, std::span<const T> actual) {
  const std::vector<T> expected = Cases::get().read<T>(test.at("expected").at(name));
  ASSERT_EQ(actual.size(), expected.size()) << name;
  double largest = 0;
  for (const T v : expected) largest = std::max(largest, std::abs(static_cast<double>(v)));
  EXPECT_GT(largest, 0) << name << " is zero everywhere: nothing would be compared";
  const double allowed = tolerance(test, largest);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], allowed) << name << "[" << i << "]";
}

template <typename T>
void write_tensors(const json& test, CpuSession& session) {
  for (const auto& [name, tensor] : test.at("tensors").items()) {
    if (!session.plan().has_slot(name)) continue;
    if (tensor.at("dtype") == "i32") {
      session.write<std::int32_t>(name, Cases::get().read<std::int32_t>(tensor));
    } else {
      session.write<T>(name, Cases::get().read<T>(tensor));
    }
  }
}

Wire build_norm(Graph& g, const NamedWires& in, const json& a) {
  NormWires wires;
  for (const auto& [name, wire] : in) {
    if (name != "x" && name != "dy") wires.at(name) = wire;
  }
  NormSettings settings{.eps = g.fill({{1}, in.at("x").dtype()}, a.at("eps").get<double>())};
  if (a.contains("fraction")) settings.fraction = a.at("fraction");
  if (a.contains("groups")) settings.groups = a.at("groups");
  return apply_norm(norm(a.at("kind").get<std::string>()), in.at("x"), wires, settings);
}

Mask mask_of(const json& a) { return a.at("mask") == "causal" ? Mask::causal : Mask::full; }

// The op of a case, applied to its tensors.
Wire build(Graph& g, const std::string& op, const NamedWires& in, const json& a) {
  const auto wire = [&](const char* name) { return in.contains(name) ? in.at(name) : Wire(); };
  const auto number = [&](const char* name, DType dtype) { return g.fill({{1}, dtype}, a.at(name).get<double>()); };
  if (op == "norm") return build_norm(g, in, a);
  if (op == "batch_eval") {
    return batch_norm_eval(in.at("x"), in.at("gain"), in.at("bias"), {in.at("mean"), in.at("var")},
                           a.at("eps").get<double>());
  }
  if (op == "attention") {
    const AttentionOptions options{.heads = a.at("heads"), .kv_heads = a.at("kv_heads"), .mask = mask_of(a)};
    return attention(in.at("q"), in.at("k"), in.at("v"), options, wire("lengths"));
  }
  if (op == "cross_entropy")
    return cross_entropy(in.at("z"), in.at("targets"), number("smoothing", in.at("z").dtype()));
  if (op == "linear_cross_entropy") {
    return linear_cross_entropy(in.at("x"), in.at("w"), in.at("targets"), number("smoothing", in.at("x").dtype()));
  }
  if (op == "linear")
    return linear(in.at("x"), in.at("w"), in.at("b"), parse_activation(a.at("activation").get<std::string>()));
  if (op == "swiglu") return swiglu(in.at("x"));
  if (op == "embedding") return embedding(in.at("table"), in.at("ids"));
  if (op == "conv2d")
    return conv2d(
        in.at("x"), in.at("w"),
        {.stride = a.at("stride"), .padding = a.at("padding"), .dilation = a.at("dilation"), .groups = a.at("groups")});
  if (op == "transposed_conv2d")
    return transposed_conv2d(
        in.at("x"), in.at("w"),
        {.stride = a.at("stride"), .padding = a.at("padding"), .dilation = a.at("dilation"), .groups = a.at("groups")},
        a.at("output_padding"));
  if (op == "max_pool")
    return max_pool(in.at("x"), {.size = a.at("size"), .stride = a.at("stride"), .padding = a.at("padding")});
  if (op == "modulate") return modulate(in.at("x"), in.at("scale"), in.at("shift"));
  if (op == "upsample") return upsample(in.at("x"), a.at("factor"));
  if (op == "time_features") return time_features(in.at("at"), a.at("width"), "rates");
  if (const Wire y = test::graph_op(op, in, a)) return y;
  fail("unknown op '{}' in the parity cases", op);
}

// y and the gradient of sum(y * dy) by every floating-point tensor that has an expected one.
template <typename T>
void check_op(const json& test) {
  Graph g;
  NamedWires in;
  for (const auto& [name, tensor] : test.at("tensors").items()) in[name] = g.input(name, type_of(tensor));
  const Wire y = build(g, test.at("op"), in, test.at("attributes"));
  Wires wrt;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : test.at("expected").items()) {
    if (name == "y") continue;
    names.push_back(name);
    wrt.push_back(in.at(name.substr(2)));
  }
  const Wires gradients = differentiate(sum_all(y * in.at("dy")), wrt);
  g.output("y", y);
  for (std::size_t i = 0; i < names.size(); ++i) g.output(names[i], gradients[i]);
  CpuSession session(compile(g, cpu_backend()));
  write_tensors<T>(test, session);
  session.run();
  compare<T>(test, "y", session.tensor<T>("y"));
  for (const std::string& name : names) compare<T>(test, name, session.tensor<T>(name));
}

template <typename T>
void check_model(const json& test, Family family) {
  const json& a = test.at("attributes");
  const auto size = [&](const char* name) { return a.contains(name) ? a.at(name).get<std::int64_t>() : 0; };
  Graph g;
  const Model model = build_model(g, {.family = family,
                                      .layers = a.at("layers"),
                                      .encoder_layers = size("encoder_layers"),
                                      .width = a.at("width"),
                                      .heads = a.at("heads"),
                                      .hidden = size("hidden"),
                                      .vocabulary = a.at("vocabulary"),
                                      .source_vocabulary = size("source_vocabulary"),
                                      .batch = a.at("batch"),
                                      .time = a.at("time"),
                                      .source_time = size("source_time"),
                                      .scheme = a.at("placement").get<std::string>(),
                                      .dtype = dtype_of<T>()});
  const Wires parameters = g.parameters();
  const Wires gradients = differentiate(model.loss, parameters);
  g.output("y", model.loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) g.output("d/" + parameters[i].name(), gradients[i]);
  const std::size_t known =
      a.contains("parameters") ? a.at("parameters").get<std::size_t>() : test.at("expected").size() - 1;
  EXPECT_EQ(known, parameters.size()) << "every parameter has an expected gradient";
  CpuSession session(compile(g, cpu_backend()));
  write_tensors<T>(test, session);
  session.run();
  for (const auto& [name, tensor] : test.at("expected").items()) compare<T>(test, name, session.tensor<T>(name));
}

// A model of a family with sizes of its own: loss and gradients with the statistics of the batch, logits with running
// ones.
template <typename T>
void check_sized(const json& test, Family family, const char* usual) {
  const ModelConfig config = test::sized_config(test, family, usual, dtype_of<T>());
  Graph training, evaluation;
  const Model model = build_model(training, config);
  const Wires parameters = training.parameters();
  const Wires gradients = differentiate(model.loss, parameters);
  training.output("y", model.loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) training.output("d/" + parameters[i].name(), gradients[i]);
  if (test.at("expected").contains("y")) {
    EXPECT_EQ(test.at("expected").size() - 2, parameters.size()) << "every parameter has an expected gradient";
  }
  for (const Wire& parameter : parameters) EXPECT_TRUE(test.at("tensors").contains(parameter.name()));
  evaluation.output("logits", build_model(evaluation, config, {.logits = true, .purpose = Purpose::evaluate}).logits);
  for (Graph* const graph : {&training, &evaluation}) {
    CpuSession session(compile(*graph, cpu_backend()));
    write_tensors<T>(test, session);
    session.run();
    for (const auto& [name, tensor] : test.at("expected").items()) {
      if ((name == "logits") == (graph == &evaluation)) compare<T>(test, name, session.tensor<T>(name));
    }
  }
}

// Samples of a denoiser whose weights and noise are given.
void check_sampler(const json& test) {
  const ModelConfig config = test::sized_config(test, "dit", "adaln_zero", DType::f64);
  Graph g;
  g.output("logits", build_model(g, config, {.logits = true, .purpose = Purpose::evaluate}).logits);
  CpuSession session(compile(g, cpu_backend()));
  write_tensors<double>(test, session);
  const json& tensors = test.at("tensors");
  const std::vector<double> x =
      test::sampled(test.at("attributes"), session, Cases::get().read<double>(tensors.at("noise")),
                    Cases::get().read<std::int32_t>(tensors.at("class")), static_cast<std::int32_t>(config.classes));
  compare<double>(test, "x", x);
}

template <typename T>
void check_optimiser(const json& test) {
  const json& a = test.at("attributes");
  const OptimiserConfig config{.name = optimiser_name(a.at("optimiser").get<std::string>()),
                               .beta1 = a.at("beta1"),
                               .beta2 = a.at("beta2"),
                               .eps = a.at("eps"),
                               .weight_decay = a.at("weight_decay"),
                               .decay = decay_kind(a.at("decay").get<std::string>())};
  const std::vector<T> gradients = Cases::get().read<T>(test.at("tensors").at("g"));
  const Type type = type_of(test.at("tensors").at("p"));
  const std::size_t n = static_cast<std::size_t>(type.shape.elements());
  Graph g;
  optimise(kind_of(config.name), Wires{g.parameter("p", type)}, Wires{g.input("gradient", type)},
           g.input("control", {{OptimiserControl::size}, dtype_of<T>()}), g.input("scale", {{1}, dtype_of<T>()}),
           {optimiser_group(config, 1, 1, 1)});
  CpuSession session(test::plain_plan(g));
  write_tensors<T>(test, session);
  session.write<T>("scale", std::array{T{1}});
  std::vector<T> path;
  for (std::size_t step = 1; step * n <= gradients.size(); ++step) {
    const ControlBlock control = control_block(config, a.at("lr"), 1, static_cast<std::int64_t>(step));
    session.write<T>("control", std::vector<T>(control.begin(), control.end()));
    session.write<T>("gradient", std::span<const T>(gradients).subspan((step - 1) * n, n));
    session.run();
    path.insert(path.end(), session.tensor<T>("p").begin(), session.tensor<T>("p").end());
  }
  compare<T>(test, "path", path);
}

template <typename T>
void check_running_statistics(const json& test) {
  const json& a = test.at("attributes");
  const auto type = [&](const char* name) { return type_of(test.at("tensors").at(name)); };
  Graph g;
  const RunningStatistics running{g.state("mean", type("mean")), g.state("var", type("var"))};
  g.output("y", batch_norm(g.input("x", type("x")), g.input("gain", type("gain")), g.input("bias", type("bias")),
                           running, a.at("eps").get<double>(), a.at("momentum").get<double>()));
  CpuSession session(test::plain_plan(g));
  write_tensors<T>(test, session);
  session.run();
  compare<T>(test, "mean", session.tensor<T>("mean"));
  compare<T>(test, "var", session.tensor<T>("var"));
}

template <typename T>
void check(const json& test) {
  const std::string op = test.at("op");
  if (op == "decoder" || op == "scheme") return check_model<T>(test, "decoder");
  if (op == "encoder_decoder") return check_model<T>(test, "encoder_decoder");
  if (op == "resnet") return check_sized<T>(test, "resnet", "resnet_v1");
  if (op == "vit") return check_sized<T>(test, "vit", "pre");
  if (op == "unet") return check_sized<T>(test, "unet", "unet");
  if (op == "mixer") return check_sized<T>(test, "mixer", "pre");
  if (op == "dit") return check_sized<T>(test, "dit", "adaln_zero");
  if (op == "sampler") return check_sampler(test);
  if (op == "noise_schedule") return compare<double>(test, "kept", test::kept_shares(test.at("attributes")));
  if (op == "gcn" || op == "graphs") return check_sized<T>(test, Family(op), "gcn");
  if (op == "optimiser") return check_optimiser<T>(test);
  if (op == "batch_running") return check_running_statistics<T>(test);
  check_op<T>(test);
}

TEST(Parity, EveryCaseAgreesWithPyTorch) {
  const Cases& cases = Cases::get();
  if (cases.list.empty())
    GTEST_SKIP() << "set NORMA_PARITY_DIR to the folder that tests/parity/reference.py wrote (make parity)";
  for (const json& test : cases.list) {
    SCOPED_TRACE(test.at("name").get<std::string>());
    if (test.at("dtype") == "f32") {
      check<float>(test);
    } else {
      check<double>(test);
    }
  }
  if (!HasFailure()) std::printf("%zu cases agree\n", cases.list.size());
}

}  // namespace
}  // namespace norma
