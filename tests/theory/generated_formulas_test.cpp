// Formulas that nobody wrote are predicted, or refused with an Error; never with a mistake of ours.
#include "error_of.h"
#include "schemes/formula_generator.h"
#include "theory/branches.h"

namespace norma {
namespace {

using test::FormulaGenerator;

TEST(Theory, GeneratedFormulasArePredictedOrRefused) {
  int done = 0;
  for (const auto terms : {FormulaGenerator::Terms::linear, FormulaGenerator::Terms::any}) {
    for (const auto kind : {FormulaGenerator::For::sublayer, FormulaGenerator::For::layer}) {
      for (unsigned seed = 0; seed < 500; ++seed) {
        const std::string formula = FormulaGenerator(seed, kind, terms).formula();
        try {
          propagate(test::scheme_named(formula), test::linear_branches(1), test::config(3));
          ++done;
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()), "");
        } catch (const std::exception& error) {
          ADD_FAILURE() << formula << "\n  " << error.what();
        }
      }
    }
  }
  EXPECT_GT(done, 300);
}

}  // namespace
}  // namespace norma
