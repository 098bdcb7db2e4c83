#include "cli/verbs.h"

namespace norma::cli {
namespace {

constexpr AddVerb kVerbs[] = {
    add_study, add_train, add_sweep, add_inspect,  add_schemes, add_plan,    add_diagnose, add_compare,    add_plot,
    add_runs,  add_check, add_init,  add_generate, add_sample,  add_predict, add_bench,    add_completion, add_man,
};

}  // namespace

void add_verbs(CLI::App& app, int& exit_code) {
  for (const AddVerb add : kVerbs) add(app, exit_code);
}

}  // namespace norma::cli
