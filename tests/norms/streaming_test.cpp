// Outputs too large for the cache are streamed past it; the numbers must not show it.
#include "norma/core/machine.h"
#include "norma/norms/fusions.h"
#include "norms/conformance.h"
#include "sanitized.h"

namespace norma {
namespace {

using namespace test;

enum class Scales { none, both };  // sum = a + b or s a + v b, one number and one for every channel

// y, sum, d/a and d/b of norm(sum), with the sum read elsewhere, for samples of [8, width].
struct Execution {
  std::shared_ptr<CpuSession> session;

  Execution(const NormInfo& info, Scales scales, std::int64_t samples, std::int64_t width) {
    Graph graph;
    const Type type{{samples, 8, width}, DType::f32};
    const Wire a = graph.input("a", type), b = graph.input("b", type);
    const Wire sum = scales == Scales::none
                         ? a + b
                         : a * graph.input("s", {{1}, DType::f32}) + b * graph.input("v", {{width}, DType::f32});
    const Wire y = apply_norm(info, sum, declare_norm(graph, info, width), {.groups = 4});
    const Wire wrt[] = {a, b};
    const Wire loss = sum_all(y * graph.input("dy", type)) + sum_all(sum);
    graph.output("sum", sum);
    graph.output("y", y);
    const Wires gradients = differentiate(loss, wrt);
    graph.output("d/a", gradients[0]);
    graph.output("d/b", gradients[1]);
    std::vector<Rewrite> rewrites = norm_fusions();
    for (const Rewrite& rewrite : norm_scale_fusions()) rewrites.push_back(rewrite);
    session = std::make_shared<CpuSession>(test::plain_plan(graph, {.rewrites = rewrites}));
    // Cheap numbers that depend on the index within a period of samples.
    for (const char* name : {"a", "b", "s", "v", "dy", "gain", "bias", "g0"}) {
      if (!session->plan().has_slot(name)) continue;
      const std::uint32_t start = static_cast<std::uint32_t>(hash_name(name));
      const std::span<float> tensor = session->tensor<float>(name);
      const std::size_t period = static_cast<std::size_t>(4 * 8 * width);
      for (std::size_t i = 0; i < tensor.size(); ++i) {
        const std::uint32_t mixed = (start + static_cast<std::uint32_t>(i % period)) * 2654435761u;
        tensor[i] = static_cast<float>(mixed >> 8) * 0x1p-23f - 1.0f;
      }
    }
    session->run();
  }
};

TEST(Streaming, GivesTheNumbersOfPlainStores) {
  const std::int64_t cache = machine().last_level_cache;
  if (cache > std::int64_t{64} << 20) GTEST_SKIP() << "would need too much memory for a cache of " << cache << " bytes";
  for (const std::int64_t width : {512, 2064}) {
    if (test::kSanitized && width != 2064) continue;
    const std::int64_t period = 4 * 8 * width;
    const std::int64_t samples = 2 * cache / (8 * width * 4) / 4 * 4 + 8;
    for (const auto& [name, scales] : {std::pair{"layer", Scales::none},
                                       {"layer", Scales::both},
                                       {"prms", Scales::none},
                                       {"prms", Scales::both},
                                       {"group", Scales::none}}) {
      SCOPED_TRACE(fmt::format("{}{}", name, scales == Scales::both ? " scaled" : ""));
      const Execution large(norm(name), scales, samples, width), small(norm(name), scales, 4, width);
      for (const char* result : {"sum", "y", "d/a", "d/b"}) {
        const std::span<float> actual = large.session->tensor<float>(result);
        const std::span<float> expected = small.session->tensor<float>(result);
        float worst = 0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
          worst = std::max(worst, std::abs(actual[i] - expected[i % static_cast<std::size_t>(period)]));
        }
        // Rows have the same bits; samples are split into other tiles.
        EXPECT_LE(worst, std::string(name) == "group" ? 1e-5f : 0.0f) << result << " at width " << width;
      }
    }
  }
}

}  // namespace
}  // namespace norma
