// Ops with their gradients on the GPU.
#pragma once

#include "cuda/agreement.h"
#include "norma/graph/differentiate.h"

namespace norma::test {

// What is built of parameters, and the gradients of a random combination of its elements.
inline void with_gradients(Graph& graph, Wire y) {
  graph.output("result", y);
  const Wires wanted = graph.parameters();
  const Wires gradients = pull_back(Wires{y}, Wires{graph.input("dy", y.type())}, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (gradients[i]) graph.output("d/" + wanted[i].name(), gradients[i]);
  }
}

// By tensor: the length of the error against that of the truth, the largest of all.
inline std::string rounded(const Run& run, Precision precision, double most, const std::vector<Tensors>& truth) {
  Graph graph;
  run.build(graph, DType::f32);
  const auto session = make_session(compile(graph, cuda_backend(), {.narrow = precision == Precision::bf16}),
                                    {.members = run.members, .tf32 = precision == Precision::tf32});
  for (int member = 0; member < run.members; ++member)
    stage_start(*session, member, static_cast<std::uint64_t>(member + 1), run.below);
  if (run.inactive >= 0) session->set_active(run.inactive, false);
  session->run();
  std::string words;
  for (int member = 0; member < run.members; ++member) {
    if (member == run.inactive) continue;
    const Tensors found = results_of(*session, member);
    for (const auto& [name, exact] : truth[static_cast<std::size_t>(member)]) {
      double wrong = 0, whole = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        wrong += (found.at(name)[i] - exact[i]) * (found.at(name)[i] - exact[i]);
        whole += exact[i] * exact[i];
      }
      if (!(std::sqrt(wrong) <= most * std::sqrt(whole)))
        words +=
            fmt::format("{} of member {}: {:.3g} off, {:.3g} allowed\n", name, member, std::sqrt(wrong / whole), most);
    }
  }
  return words;
}
inline std::string rounded(const Run& run, Precision precision, double most) {
  return rounded(run, precision, most, run_on(cpu_backend(), DType::f64, run));
}

}  // namespace norma::test
