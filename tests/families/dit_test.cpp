// Diffusion transformers: shapes, gradients, and the answers of a reference model.
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/files.h"
#include "models/model_check.h"
#include "norma/store/safetensors.h"
#include "norma/theory/predict.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

ModelConfig tiny_dit(const std::string& scheme, DType dtype = DType::f32) {
  ModelConfig config = tiny("dit", scheme, dtype);
  config.layers = 2;
  set_size(config, "image_height", 4);
  set_size(config, "image_width", 6);
  set_size(config, "image_channels", 3);
  set_size(config, "patch", 2);
  return config;
}

TEST(Dit, PatchesAreTokensAndSublayersHaveScalesOfTheirOwn) {
  Graph graph;
  const Model model = build_model(graph, tiny_dit("adaln_zero"), {.logits = true});
  EXPECT_EQ(model.sites[0].stream_in.shape(), (Shape{4, 6, 24}));
  EXPECT_EQ(model.logits.shape(), (Shape{4, 4, 6, 3}));
  EXPECT_EQ(graph.find("embedding.patch").shape(), (Shape{2, 2, 3, 24}));
  EXPECT_EQ(graph.find("embedding.class").shape(), (Shape{8, 24})) << "one more than there are classes";
  for (const char* of : {"layers.0.attn.", "layers.1.ffn."}) {
    for (const char* what : {"scale", "shift", "gate"}) {
      const std::string name = std::string(of) + what;
      ASSERT_TRUE(graph.find(name + ".weight")) << name;
      EXPECT_EQ(graph.find(name + ".weight").shape(), (Shape{24, 24}));
    }
  }
  EXPECT_TRUE(graph.find("final.shift.bias"));
  EXPECT_FALSE(graph.find("final.gate.weight")) << "it has no branch";
  Graph plain;
  build_model(plain, tiny_dit("adaln"));
  EXPECT_FALSE(plain.find("layers.0.attn.gate.weight"));
}

// With adaLN-Zero every block starts as the identity and the answer is zero, so the loss is the answers' mean square.
TEST(Dit, AdaLnZeroStartsAtNothing) {
  const ModelConfig config = tiny_dit("adaln_zero");
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true});
  for (const SublayerSite& site : model.sites) graph.output("moved/" + site.name, site.stream_out - site.stream_in);
  graph.output("logits", model.logits);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, 1);
  fill_inputs(session, config);
  session.run();
  for (const SublayerSite& site : model.sites) {
    for (const float moved : session.tensor<float>("moved/" + site.name)) EXPECT_EQ(moved, 0);
  }
  for (const float answer : session.tensor<float>("logits")) EXPECT_EQ(answer, 0);
}

TEST(Dit, HasTheRightGradients) {
  for (const char* scheme : {"adaln", "adaln_zero", "pre", "post", "deepnorm"}) {
    for (const std::int64_t classes : {0, 5}) {
      SCOPED_TRACE(scheme);
      ModelConfig config = tiny_dit(scheme, DType::f64);
      config.classes = classes;
      test::check_model_gradients(config);
    }
  }
}

// Of schemes that make nothing of the condition: it is part of the stream from the start.
TEST(Dit, TheTheoryPredictsItsStream) {
  for (const char* scheme : {"pre", "peri", "deepnorm"}) {
    SCOPED_TRACE(scheme);
    ModelConfig config = tiny_dit(scheme);
    config.layers = 6;
    config.width = 96;
    config.batch = 8;
    set_size(config, "image_height", 8);
    set_size(config, "image_width", 8);
    const Prediction theory = predict(config);
    const std::vector<double> streams = test::initial_streams(config, 3);
    ASSERT_EQ(theory.streams.size(), streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) EXPECT_NEAR(streams[i] / theory.streams[i].rms, 1, 0.15) << i;
  }
  EXPECT_NE(test::error_of([] { predict(tiny_dit("adaln_zero")); }).find("that a condition makes"), std::string::npos);
}

TEST(Dit, MistakesAreNamed) {
  const auto error = [](auto change, const char* scheme = "pre") {
    ModelConfig config = tiny_dit(scheme);
    change(config);
    return test::error_of([&] {
      Graph graph;
      build_model(graph, config);
    });
  };
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "patch", 5); }),
            "model.sizes.image_height is 4, which does not divide into patches of 5; expected a multiple");
  EXPECT_EQ(error([](ModelConfig& c) { set_size(c, "time_features", 1); }),
            "model.sizes.time_features is 1; expected at least 2");
  EXPECT_EQ(error([](ModelConfig& c) { c.tied = true; }), "a dit has no token table that its head could be tied to");
  ModelConfig decoder = tiny("decoder", "adaln");
  EXPECT_EQ(
      test::error_of([&] {
        Graph graph;
        build_model(graph, decoder);
      }),
      "scheme 'adaln' makes 'scale' of a condition, such as a timestep or a class, which models of this family do "
      "not have");
}

// Weights of a reference model, [out, in] and patches [out, channels, row, column], into tensors of norma's names.
class ReferenceWeights {
 public:
  ReferenceWeights(CpuSession& session, const SafetensorsFile& file) : session_(session), file_(file) {}

  void linear(const std::string& to, const std::string& from, std::size_t part = 0, std::size_t parts = 1) {
    const std::vector<float> weight = file_.to_f32(from + ".weight"), bias = file_.to_f32(from + ".bias");
    const std::size_t in = weight.size() / bias.size(), out = bias.size() / parts;
    const std::span<double> w = session_.tensor<double>(to + ".weight"), b = session_.tensor<double>(to + ".bias");
    ASSERT_EQ(w.size(), in * out) << to;
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t i = 0; i < in; ++i) w[i * out + o] = weight[(part * out + o) * in + i];
      b[o] = bias[part * out + o];
    }
  }

  void plain(const std::string& to, const std::string& from) {
    const std::vector<float> values = file_.to_f32(from);
    const std::span<double> tensor = session_.tensor<double>(to);
    ASSERT_LE(values.size(), tensor.size()) << to;
    std::copy(values.begin(), values.end(), tensor.begin());
  }

  void patches(const std::string& to, const std::string& from, std::size_t channels, std::size_t side) {
    const std::vector<float> values = file_.to_f32(from);
    const std::span<double> tensor = session_.tensor<double>(to);
    const std::size_t width = values.size() / (channels * side * side);
    for (std::size_t o = 0; o < width; ++o) {
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t at = 0; at < side * side; ++at)
          tensor[(at * channels + c) * width + o] = values[(o * channels + c) * side * side + at];
      }
    }
  }

  // The head answers means and variances, `answered` numbers for each place of a patch; norma asks for the means.
  void head(const std::string& from, std::size_t answered, std::size_t kept) {
    const std::vector<float> weight = file_.to_f32(from + ".weight"), bias = file_.to_f32(from + ".bias");
    const std::span<double> w = session_.tensor<double>("head.weight"), b = session_.tensor<double>("head.bias");
    const std::size_t in = weight.size() / bias.size(), places = bias.size() / answered, out = places * kept;
    for (std::size_t place = 0; place < places; ++place) {
      for (std::size_t c = 0; c < kept; ++c) {
        for (std::size_t i = 0; i < in; ++i) w[i * out + place * kept + c] = weight[(place * answered + c) * in + i];
        b[place * kept + c] = bias[place * answered + c];
      }
    }
  }

 private:
  CpuSession& session_;
  const SafetensorsFile& file_;
};

// The reference's LayerNorm adds 1e-6 to the variance and norma's 1e-5, which is what the tolerance leaves room for.
TEST(Dit, AnswersAsTheReferenceModelDoes) {
  const std::string weights = shared_data("tiny-reference-models/tiny_dit.safetensors"),
                    io = shared_data("tiny-reference-models/tiny_dit_io.json");
  if (weights.empty() || io.empty()) GTEST_SKIP() << "the reference models are not there";
  ModelConfig config{.family = "dit", .layers = 2, .width = 16, .heads = 2, .classes = 5, .batch = 1};
  config.scheme = "adaln_zero";
  config.activation = Activation::gelu_tanh;
  config.dtype = DType::f64;
  for (const auto& [name, size] :
       {std::pair{"image_height", 6}, {"image_width", 6}, {"image_channels", 4}, {"patch", 2}})
    set_size(config, name, size);
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true});
  graph.output("logits", model.logits);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, 1);
  const SafetensorsFile file(weights);
  ReferenceWeights reference(session, file);
  reference.patches("embedding.patch", "x_embedder.proj.weight", 4, 2);
  reference.plain("embedding.bias", "x_embedder.proj.bias");
  reference.plain("embedding.position", "pos_embed");
  reference.plain("embedding.class", "y_embedder.embedding_table.weight");
  reference.linear("time.in", "t_embedder.mlp.0");
  reference.linear("time.out", "t_embedder.mlp.2");
  for (const std::string i : {"0", "1"}) {
    const std::string from = "blocks." + i + ".", to = "layers." + i + ".";
    reference.linear(to + "attn.qkv", from + "attn.qkv");
    reference.linear(to + "attn.out", from + "attn.proj");
    reference.linear(to + "ffn.in", from + "mlp.fc1");
    reference.linear(to + "ffn.out", from + "mlp.fc2");
    const char* parts[] = {"attn.shift", "attn.scale", "attn.gate", "ffn.shift", "ffn.scale", "ffn.gate"};
    for (std::size_t part = 0; part < 6; ++part)
      reference.linear(to + parts[part], from + "adaLN_modulation.1", part, 6);
  }
  reference.linear("final.shift", "final_layer.adaLN_modulation.1", 0, 2);
  reference.linear("final.scale", "final_layer.adaLN_modulation.1", 1, 2);
  reference.head("final_layer.linear", 8, 4);
  std::ifstream stream(io);
  const nlohmann::json cases = nlohmann::json::parse(stream).at("cases");
  ASSERT_EQ(cases.size(), 3u);
  for (const nlohmann::json& one : cases) {
    const std::vector<double> latent = one.at("latent"), expected = one.at("output");  // [channels, height, width]
    const std::span<double> noised = session.tensor<double>("noised");
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t at = 0; at < 36; ++at) noised[at * 4 + c] = latent[c * 36 + at];
    }
    session.tensor<double>("timestep")[0] = one.at("t");
    session.tensor<std::int32_t>("class")[0] = one.at("y");
    session.run();
    const std::span<double> answer = session.tensor<double>("logits");
    double largest = 0;
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t at = 0; at < 36; ++at) {
        EXPECT_NEAR(answer[at * 4 + c], expected[c * 36 + at], 4e-5) << c << " " << at;
        largest = std::max(largest, std::abs(expected[c * 36 + at]));
      }
    }
    EXPECT_GT(largest, 1);
  }
}

}  // namespace
}  // namespace norma
