// Formulas that nobody wrote become models, or are refused with an Error; never with a mistake of ours.
#include "models/model_check.h"
#include "norma/backends/cpu.h"
#include "norma/graph/differentiate.h"
#include "schemes/formula_generator.h"

namespace norma {
namespace {

using test::FormulaGenerator;

struct Tally {
  int done = 0, refused = 0;

  template <typename F>
  void count(const std::string& formula, F&& attempt) {
    try {
      attempt();
      ++done;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << formula << "\n  " << error.what();
    }
  }
};

// Forward and backward, planned.
void plan_gradients(const std::string& formula) {
  Graph graph;
  const Model model = build_model(graph, test::tiny("decoder", formula));
  Wires parameters;
  for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
  const Wires gradients = differentiate(model.loss, parameters);
  graph.output("loss", model.loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) graph.output("d." + parameters[i].name(), gradients[i]);
  compile(graph, cpu_backend());
}

TEST(GeneratedFormulas, BecomeModels) {
  Tally tally;
  for (const auto kind : {FormulaGenerator::For::sublayer, FormulaGenerator::For::layer}) {
    for (unsigned seed = 0; seed < 500; ++seed) {
      const std::string formula = FormulaGenerator(seed, kind).formula();
      tally.count(formula, [&] { plan_gradients(formula); });
    }
  }
  EXPECT_GT(tally.done, 800);
}

TEST(GeneratedFormulas, AttentionOverWhatIsNotTokensIsRefused) {
  for (const char* formula :
       {"x + attn(mean(x), q = \"rmsnorm\")", "x + attn(mean(x), k = \"unit\", scores = \"carry\") + ffn(x)",
        "x + f(mean(x), head_gain = \"projected\")", "x + attn(mean(x))"}) {
    ModelConfig model = test::tiny("decoder", formula);
    model.heads = 1;
    const std::string error = test::error_of([&] {
      Graph graph;
      build_model(graph, model);
    });
    EXPECT_NE(error.find("attention reads tokens [batch, time, channels], but was given [1]"), std::string::npos)
        << formula << ": " << error;
  }
}

}  // namespace
}  // namespace norma
