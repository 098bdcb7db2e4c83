// One model, several plans: fused and unfused, recomputed, alone and in a cohort. Every scheme in every family.
#include "elementary_backend.h"
#include "models/model_check.h"
#include "norma/backends/cpu.h"

namespace norma {
namespace {

// Loss and gradients of a model with smoothing and dropout.
struct Program {
  ModelConfig config;
  std::vector<ParameterSpec> parameters;
  std::shared_ptr<const Plan> plan;

  Program(const ModelConfig& given, const CompileOptions& options, const Backend& backend = cpu_backend())
      : config(given) {
    config.dropout = config.smoothing = true;
    Graph graph;
    const Model model = build_model(graph, config);
    parameters = model.parameters;
    Wires wrt;
    for (const ParameterSpec& spec : parameters) wrt.push_back(graph.find(spec.name));
    const Wires gradients = differentiate(model.loss, wrt);
    graph.output("loss", model.loss);
    for (std::size_t i = 0; i < wrt.size(); ++i) graph.output("d/" + wrt[i].name(), gradients[i]);
    plan = compile(graph, backend, options);
  }
};

// The loss, then all gradients, of the members with these seeds.
template <typename T>
std::vector<std::vector<T>> run(const Program& program, const std::vector<std::uint64_t>& seeds, int threads = 2) {
  CpuSession session(program.plan, {.members = static_cast<int>(seeds.size()), .threads = threads});
  for (int member = 0; member < session.members(); ++member) {
    const std::uint64_t seed = seeds[static_cast<std::size_t>(member)];
    initialise(session, program.parameters, seed, member);
    test::fill_inputs(session, program.config, member, seed);
    for (const ParameterSpec& spec : program.parameters) {
      const RandomStream stream(seed, spec.name + "/moved");
      const std::span<T> tensor = session.tensor<T>(spec.name, member);
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += static_cast<T>(0.02 * stream.normal(i));
    }
  }
  session.run();
  std::vector<std::vector<T>> results;
  for (int member = 0; member < session.members(); ++member) {
    std::vector<T> all = {session.tensor<T>("loss", member)[0]};
    for (const ParameterSpec& spec : program.parameters) {
      const std::span<T> d = session.tensor<T>("d/" + spec.name, member);
      all.insert(all.end(), d.begin(), d.end());
    }
    results.push_back(std::move(all));
  }
  return results;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance * (1 + largest)) << i;
}

using Case = std::tuple<Family, std::string>;
class Equivalence : public testing::TestWithParam<Case> {
 protected:
  ModelConfig config(DType dtype) const { return test::tiny(std::get<0>(GetParam()), std::get<1>(GetParam()), dtype); }
};

TEST_P(Equivalence, FusionsChangeNothingButRounding) {
  const std::vector<double> fused = run<double>({config(DType::f64), {}}, {1})[0];
  expect_near(fused, run<double>({config(DType::f64), {.rewrites = std::vector<Rewrite>()}}, {1})[0], 1e-11);
}

TEST_P(Equivalence, ABackendOfElementaryOpsComputesTheSame) {
  const test::ElementaryBackend elementary;
  const Program program(config(DType::f64), {}, elementary);
  for (const Node& node : program.plan->nodes()) ASSERT_FALSE(node.op->has_reference()) << node.op->name();
  expect_near(run<double>(program, {1})[0], run<double>({config(DType::f64), {}}, {1})[0], 1e-10);
}

TEST_P(Equivalence, RecomputationChangesNoBit) {
  const std::vector<float> kept = run<float>({config(DType::f32), {}}, {1})[0];
  EXPECT_EQ(kept, run<float>({config(DType::f32), {.recompute_every = 1}}, {1})[0]);
}

TEST_P(Equivalence, MemberOfACohortHasTheBitsOfTheSameModelAlone) {
  const Program program(config(DType::f32), {});
  const auto cohort = run<float>(program, {1, 2, 3});
  EXPECT_NE(cohort[0], cohort[1]);
  for (const int threads : {1, 2}) {
    EXPECT_EQ(cohort[1], run<float>(program, {2}, threads)[0]) << threads << " threads";
    EXPECT_EQ(cohort[2], run<float>(program, {3}, threads)[0]) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Equivalence,
                         testing::Combine(testing::Values("decoder", "encoder", "encoder_decoder"),
                                          testing::ValuesIn(test::catalogue_names())),
                         [](const auto& test) {
                           return test::name_of(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace norma
