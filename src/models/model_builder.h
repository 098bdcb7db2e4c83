// What the builders of all families share: inputs, stacks by scheme, tables and heads that start as scheme and model
// say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "norma/models/model.h"
#include "norma/models/rules.h"

namespace norma {

class ModelBuilder {
 public:
  // Makes the inputs of the family, and those of dropout where the model has it.
  ModelBuilder(Graph& graph, const ModelConfig& config, const ModelOptions& options);

  Graph& graph() { return graph_; }
  const ModelConfig& config() const { return config_; }
  const Scheme& scheme() const { return *config_.scheme; }
  Parameters& parameters() { return parameters_; }

  Wire input(std::string_view name) const;

  // What one stack of the family is built with, apart from what it reads; only the last heeds an order of layers.
  const std::vector<StackSites>& sites() const { return sites_; }
  StackConfig stack_config(std::size_t index) const;
  BatchStatistics statistics() const;                 // of norms over the batch
  SchemeRules rules(const StackConfig& stack) const;  // at its first layer
  // Through the stack, whose sites and schedules become the model's.
  Wire through(const StackConfig& stack, Wire x);

  Wire dropped(Wire x, const std::string& site) const;  // x where the model has no dropout

  // A weight outside of the stacks: of this deviation and gain unless the scheme has rules for its role.
  ParameterSpec outer(const char* name, const char* role, double deviation, const SchemeRules& rules,
                      UnitVectors unit) const;

  // Logits of so many classes by a weight of its own or by that of a table, and their cross-entropy with the input
  // "targets". Sets hidden, loss and logits.
  void classify(Wire hidden, std::int64_t classes, const StackConfig& stack, const SchemeRules& rules, Wire table = {});

  // Numbers as they stand, whose mean squared distance from the input "answer" is the loss. Sets hidden, loss and
  // logits.
  void regress(Wire hidden, Wire numbers);

  Model take();

 private:
  std::optional<LayerOrder> order_of(std::size_t index) const;

  Graph& graph_;
  const ModelConfig& config_;
  const ModelOptions& options_;
  Parameters parameters_;
  std::vector<StackSites> sites_;
  Wire dropout_, dropout_key_;
  Model model_;
};

}  // namespace norma
