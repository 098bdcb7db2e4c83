// Every op on the GPU against the CPU: forward, backward, fused and not, members side by side.
#include "backends/examples.h"
#include "cuda/gradients.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/reduce.h"

namespace norma {
namespace {

// Probes, and optional outputs.
void output_what_nobody_reads(Graph& graph) {
  std::vector<bool> read(graph.values().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const int id : node.inputs) read[static_cast<std::size_t>(id)] = true;
  }
  for (const Output& output : graph.outputs()) read[static_cast<std::size_t>(output.value)] = true;
  for (const Node& node : graph.nodes()) {
    if (!node.op->updates().empty()) continue;  // seen as parameters and states
    for (const int id : node.outputs) {
      if (!read[static_cast<std::size_t>(id)]) graph.output("unread." + std::to_string(id), Wire(&graph, id));
    }
  }
}

// An example with the gradients of a random combination of its elements.
void build_example(const test::Example& example, Graph& graph, DType dtype) {
  const Wire y = example(graph, dtype);
  graph.output("result", y);
  output_what_nobody_reads(graph);
  try {
    const Wire parameters[] = {y};
    const Wire dy = graph.input("dy", y.type());
    const Wires wanted = graph.parameters();
    const Wires gradients = pull_back(parameters, Wires{dy}, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (gradients[i]) graph.output("d/" + wanted[i].name(), gradients[i]);
    }
  } catch (const Error&) {
    // The op has no derivative.
  }
}

std::string name_of_ops(const test::Example& example) {
  Graph graph;
  example(graph, DType::f32);
  std::string names;
  for (const Node& node : graph.nodes()) names += std::string(node.op->name()) + " ";
  return names;
}

class CudaOps : public testing::TestWithParam<test::Sizes> {};

TEST_P(CudaOps, AgreeWithTheCpu) {
  SKIP_WITHOUT_GPU();
  const test::Sizes sizes = GetParam();
  for (const test::Example& example : test::examples(sizes)) {
    if (name_of_ops(example) == "cast ") continue;  // to f64, which stays on the CPU
    for (const bool fuse : {false, true}) {
      const test::Run run{.build = [&](Graph& graph, DType dtype) { build_example(example, graph, dtype); },
                          .below = std::min(sizes.rows, sizes.width),
                          .fuse = fuse,
                          .members = 3,
                          .inactive = 1};
      try {
        const std::string words = test::disagreement(run);
        EXPECT_EQ(words, "") << name_of_ops(example) << sizes.rows << " x " << sizes.width << (fuse ? " fused" : "");
      } catch (const Error& error) {
        ADD_FAILURE() << name_of_ops(example) << sizes.rows << " x " << sizes.width << ": " << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CudaOps,
                         testing::Values(test::Sizes{4, 6}, test::Sizes{1, 2}, test::Sizes{33, 64},
                                         test::Sizes{300, 130}, test::Sizes{7, 1030}, test::Sizes{24, 2048},
                                         test::Sizes{2500, 16}),
                         [](const testing::TestParamInfo<test::Sizes>& one) {
                           return std::to_string(one.param.rows) + "x" + std::to_string(one.param.width);
                         });

TEST(CudaBits, TwoRunsGiveTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const test::Example& example : test::examples({300, 130})) {
    if (name_of_ops(example) == "cast ") continue;
    const test::Run run{
        .build = [&](Graph& graph, DType dtype) { build_example(example, graph, dtype); }, .below = 130, .members = 2};
    const auto once = test::run_on(cuda_backend(), DType::f32, run),
               again = test::run_on(cuda_backend(), DType::f32, run);
    for (const auto& [name, values] : once[1])
      EXPECT_EQ(test::distance(values, again[1].at(name)), 0) << name_of_ops(example) << name;
  }
}

// A thread has a row where classes are few and rows many; otherwise a warp has one. Some targets are
// ignored.
TEST(CudaLosses, OfFewClasses) {
  SKIP_WITHOUT_GPU();
  for (const auto& [rows, members] : std::vector<std::pair<std::int64_t, int>>{{11000, 3}, {300, 120}, {700, 3}}) {
    for (const std::int64_t classes : {2, 7, 16, 17}) {
      for (const bool projected : {false, true}) {
        const auto build = [=, rows = rows](Graph& graph, DType dtype) {
          const Wire x = graph.parameter("x", {{rows, projected ? 12 : classes}, dtype});
          const Wire targets = graph.input("targets", {{rows}, DType::i32}), smoothing = graph.fill({{1}, dtype}, 0.1);
          const CrossEntropyOptions options{.ignore = 1};
          test::with_gradients(graph, projected ? linear_cross_entropy(x, graph.parameter("w", {{12, classes}, dtype}),
                                                                       targets, smoothing, options)
                                                : cross_entropy(x, targets, smoothing, options));
        };
        const test::Run run{.build = build, .below = classes, .members = members, .inactive = 1};
        EXPECT_EQ(test::disagreement(run), "") << rows << " rows of " << classes << ", " << members << projected;
      }
    }
  }
}

// The first run goes launch by launch, the second is recorded, the third replays.
TEST(CudaSession, ARecordedStepIsTheStep) {
  SKIP_WITHOUT_GPU();
  const test::Run run{
      .build =
          [](Graph& graph, DType dtype) {
            const Wire x = graph.parameter("x", {{70, 33}, dtype});
            const Wire gradient = x * 0.5 + graph.input("y", x.type());
            graph.output("norm", gradient_norm(Wires{gradient}, graph.input("clip", {{1}, dtype})).norm);
            optimise(OptimiserKind::adam, Wires{x}, Wires{gradient},
                     graph.input("control", {{OptimiserControl::size}, dtype}), graph.input("scale", {{1}, dtype}),
                     {{}});
          },
      .members = 3,
      .inactive = 2};
  for (const int times : {1, 2, 3, 7}) EXPECT_EQ(test::disagreement(run, {}, times), "") << times;
}

TEST(CudaSession, AMemberThatIsNotActiveKeepsItsMemory) {
  SKIP_WITHOUT_GPU();
  const test::Run run{.build =
                          [](Graph& graph, DType dtype) {
                            const Wire x = graph.parameter("x", {{5, 3}, dtype});
                            optimise(OptimiserKind::sgd, Wires{x}, Wires{graph.input("y", x.type())},
                                     graph.input("control", {{OptimiserControl::size}, dtype}),
                                     graph.input("scale", {{1}, dtype}), {{}});
                          },
                      .members = 2,
                      .inactive = 1};
  const auto after = test::run_on(cuda_backend(), DType::f32, run, 3);
  const std::vector<double> start = test::start_of("x", {{5, 3}, DType::f32}, 2, 2);
  EXPECT_EQ(after[1].at("x"), start);
  EXPECT_NE(after[0].at("x"), test::start_of("x", {{5, 3}, DType::f32}, 1, 2));
}

TEST(CudaSession, NamesTheFirstWireThatIsNotFinite) {
  SKIP_WITHOUT_GPU();
  Graph graph;
  const Wire x = graph.parameter("x", {{3, 4}, DType::f32});
  graph.output("y", sum_all(log(x * 2.0) + x));
  const auto session =
      make_session(compile(graph, cuda_backend(), {.rewrites = std::vector<Rewrite>{}}), {.members = 2});
  std::vector<float> values(12, 1.0f);
  session->write<float>("x", values, 0);
  values[7] = -1;
  session->write<float>("x", values, 1);
  const auto found = session->run_checked();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->member, 1);
  EXPECT_EQ(found->index, 7);
  EXPECT_NE(found->wire.find("log"), std::string::npos) << found->wire;
  EXPECT_TRUE(std::isnan(found->value));
}

TEST(CudaSession, RefusesWhatDoesNotFit) {
  SKIP_WITHOUT_GPU();
  Graph graph;
  graph.output("y", sum_all(graph.parameter("x", {{1 << 20, 1 << 20}, DType::f32})));
  try {
    make_session(compile(graph, cuda_backend()));
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("but the GPU has"), std::string::npos) << message;
    EXPECT_NE(message.find("'x'"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace norma
