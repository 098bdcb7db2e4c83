// One residual block, x + f(norm(x)): traced, differentiated, planned and run.
#include <norma/backends/cpu.h>
#include <norma/backends/device.h>
#include <norma/graph/differentiate.h>
#include <norma/graph/graph.h>
#include <norma/graph/plan.h>
#include <norma/ops/elementwise.h>
#include <norma/ops/reduce.h>

#include <cstdio>
#include <vector>

int main() {
  using namespace norma;

  // Trace. A wire is a value in the graph; plain expressions append nodes.
  Graph graph;
  const Wire x = graph.input("x", {{8, 4}, DType::f32});
  const Wire gain = graph.parameter("norm.gain", {{4}, DType::f32});
  const Wire normed = x * rsqrt(mean_last(square(x)) + 1e-5) * gain;
  const Wire y = x + tanh(normed);
  const Wire loss = mean_all(square(y));

  // Differentiate. The backward pass is more nodes of the same graph.
  const Wire wrt[] = {gain};
  const Wire dgain = differentiate(loss, wrt)[0];
  graph.output("loss", loss);
  graph.output("dgain", dgain);

  // Plan. The memory of the step is known before anything runs.
  const auto plan = compile(graph, cpu_backend());
  std::printf("%zu kernels\n%s", plan->steps().size(), plan->memory_report().c_str());

  // Run, here for two members with different gains in one session.
  const auto owned = make_session(plan, {.members = 2});
  Session& session = *owned;
  std::vector<float> rows(8 * 4);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 7) - 3;
  session.write_all<float>("x", rows);
  for (int member = 0; member < 2; ++member) {
    session.write<float>("norm.gain", std::vector<float>(4, member == 0 ? 1.0f : 0.1f), member);
  }
  session.run();
  for (int member = 0; member < 2; ++member) {
    std::printf("member %d: loss %.4f, dgain[0] %.4f\n", member, session.number("loss", member),
                session.number("dgain", member));
  }
  return session.number("loss", 0) > session.number("loss", 1) ? 0 : 1;
}
