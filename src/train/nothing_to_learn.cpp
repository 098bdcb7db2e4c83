// Data that no model can learn anything from: every answer is the same, or every question of a classifier.
#include <algorithm>

#include "norma/core/error.h"
#include "norma/train/data.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

constexpr std::int64_t kEnough = std::int64_t{1} << 12;  // targets; ordinary data differ in the first batch

// Counts values for as long as they are all the same.
template <typename Value>
struct Sameness {
  std::optional<Value> first = {};
  std::int64_t count = 0;
  bool differ = false;

  void add(const Value& value) {
    ++count;
    if (!first) first = value;
    differ = differ || *first != value;
  }
};

// What a row of a batch asks, all tensors of it one behind the other; nothing where a batch is one whole, as a graph
// is.
class Questions {
 public:
  explicit Questions(const std::vector<InputSpec>& inputs) {
    for (const InputSpec& input : inputs) {
      if (input.content == InputSpec::Content::targets) continue;
      if (input.sizes.empty() || input.sizes.front().name != "batch") rows_ = 0;
      if (input.content == InputSpec::Content::lengths) continue;  // what they leave out is padding
      names_.push_back(input.name);
      if (rows_ > 0) rows_ = input.sizes.front().value;
    }
  }

  void add(const Batch& batch) {
    for (std::int64_t row = 0; row < rows_ && !same.differ; ++row) same.add(of_row(batch, row));
  }
  bool known() const { return rows_ > 0 && same.count > 0; }

  Sameness<std::vector<double>> same;

 private:
  std::vector<double> of_row(const Batch& batch, std::int64_t row) const {
    std::vector<double> all;
    for (const std::string& name : names_) {
      std::visit(
          [&](const auto& values) {
            const auto width = std::ssize(values) / rows_;
            all.insert(all.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
          },
          batch.tensor(name).values);
    }
    return all;
  }

  std::vector<std::string> names_;
  std::int64_t rows_ = 1;
};

}  // namespace

std::optional<std::string> nothing_to_learn(const Source& source, const ModelConfig& model, std::uint64_t seed) {
  const std::vector<InputSpec> inputs = model.family->inputs(model);
  const auto asked = std::ranges::find(inputs, InputSpec::Content::targets, &InputSpec::content);
  if (asked == inputs.end()) return std::nullopt;  // numbers, behind noise that is always another
  const bool classifies = asked->sizes.size() == 1;
  Sameness<std::int32_t> answers;
  Questions questions(inputs);
  Batch batch;
  for (std::uint64_t index = 0; answers.count < kEnough && static_cast<std::int64_t>(index) < kEnough; ++index) {
    source.fill(index, seed, batch);
    for (const std::int32_t id : batch.ids(asked->name)) {
      if (id != kIgnored) answers.add(id);
    }
    if (classifies) questions.add(batch);
    if (answers.differ && (!questions.known() || questions.same.differ)) return std::nullopt;
  }
  if (!answers.first) return "no target of its data is counted";
  if (!answers.differ)
    return fmt::format("all of {} targets are {} {}", answers.count, classifies ? "class" : "token", *answers.first);
  return fmt::format("all of {} rows are the same to the model, but not their classes", questions.same.count);
}

}  // namespace norma
