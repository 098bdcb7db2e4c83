// The table of families: what each reads and answers, where its residual stacks are, and how it is built. Everything
// above asks a row and never its name; docs/families.md is the whole of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/shape.h"
#include "norma/models/layer_branch.h"
#include "norma/schemes/place.h"

namespace norma {

class ModelBuilder;
struct ModelConfig;

// A tensor of a batch that a model reads.
struct InputSpec {
  enum class Content { ids, targets, lengths, numbers };
  struct Size {
    std::string name;  // "time": of a configuration
    std::int64_t value = 0;
  };

  std::string name;
  Content content = Content::ids;
  std::vector<Size> sizes = {};  // of its axes
  std::int64_t below = 0;        // ids and targets are from 0 to one less; lengths: what a row that is whole has

  Shape shape() const;
};

// What a model answers: logits of classes, which cross-entropy and accuracy judge, or numbers.
struct OutputSpec {
  enum class Kind { classes, numbers };
  Kind kind = Kind::classes;
  Shape shape = {};  // of the logits
};

// One residual stack as it will be built: what probes, analyses and the theory know it by.
struct StackSites {
  std::string scope = {};              // of its weights and sites; empty: there is one stack
  StackKind kind = StackKind::single;  // whose constants of a scheme it takes
  std::int64_t layers = 0;
  std::int64_t other_layers = 0;          // of the stack that it belongs together with
  LayerBranches branches = {};            // of a layer, in order
  std::vector<std::int64_t> widths = {};  // of the stream behind each layer; empty: that of the model everywhere
  // How many branches the stream that enters each layer has taken up since a projection last made it anew; empty: all.
  std::vector<std::int64_t> since = {};

  std::string prefix() const { return scope.empty() ? "" : scope + "."; }
  // Whether its stream begins anew, or is what the stack before has answered.
  enum class Stream { anew, goes_on } stream = Stream::anew;

  // "decoder.layers.3.ffn"
  std::string site(std::int64_t layer, const BranchKind& kind) const;
  std::vector<std::string> names() const;
  std::vector<const BranchKind*> kinds() const;
  std::int64_t sublayers() const { return sublayers_before(branches, layers); }
  // The last branch that every layer has.
  const BranchKind& closing() const;
};

// The first of the stacks through which one stream goes to the output.
std::size_t first_of_last_stream(std::span<const StackSites> stacks);

// What a study of a family does unless it is told otherwise; what is empty is as for transformers.
struct FamilyStudy {
  std::vector<std::string> schemes = {};
  // Whether one of them fits a model; null: all do.
  std::function<bool(const ModelConfig&, std::string_view scheme)> fits = nullptr;
  std::vector<std::string> keys = {};     // "model.norm=batch": of the configuration of its runs
  std::vector<double> rates = {};         // peak learning rates
  std::vector<std::int64_t> depths = {};  // of the analyses at init
};

// Whether a model says tokens.
enum class Speech { none, goes_on, answers };

struct FamilyRow {
  std::string name;   // "encoder_decoder"
  std::string habit;  // how it reads, after "which": "reads one row from left to right"
  std::string data;   // the kind of data that feeds it (data/source.h)
  Speech speech = Speech::none;
  struct OwnSize {
    std::string name;
    std::int64_t usual = 0;  // where there are no data that know it; 0: left out
  };
  std::vector<OwnSize> sizes = {};  // that [model.sizes] may give it, and classes if it has some

  std::int64_t batch = 0;  // samples of a batch, where it has no choice; 0: as configured

  // Throws Error for what is wrong with a configuration beyond what every family needs.
  std::function<void(const ModelConfig&)> check = [](const ModelConfig&) {};
  std::function<std::vector<InputSpec>(const ModelConfig&)> inputs = nullptr;
  std::function<OutputSpec(const ModelConfig&)> output = nullptr;
  // Positions of a sample in the stream of the last stack: its tokens; 1 where a sample is one vector.
  std::function<std::int64_t(const ModelConfig&)> positions = nullptr;
  std::function<std::vector<StackSites>(const ModelConfig&)> sites = nullptr;  // the one with the output last
  std::function<void(ModelBuilder&)> build = nullptr;
  enum class Layers { alike, different } layers = Layers::alike;  // in what they cost
  // Variance of the stream where it enters a stack, which has these rules; null: the theory does not predict it.
  std::function<double(const ModelConfig&, const SchemeRules&)> start = nullptr;
  FamilyStudy study = {};
};

std::span<const FamilyRow> families();
std::string family_names();  // "decoder, encoder or ..."

// A row of the table, by its name.
class Family {
 public:
  // Also with hyphens. Throws Error that names the nearest.
  Family(std::string_view name);  // NOLINT(google-explicit-constructor): a configuration names it
  Family(const char* name) : Family(std::string_view(name)) {}

  const FamilyRow* operator->() const { return row_; }
  bool operator==(const Family&) const = default;

 private:
  const FamilyRow* row_;
};

}  // namespace norma
