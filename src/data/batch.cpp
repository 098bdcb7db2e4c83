#include "norma/data/batch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {

std::uint64_t new_content() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

template <typename Values>
Values& Batch::written(std::string_view name, const Shape& shape) {
  BatchTensor* found = own(name);
  if (found == nullptr) found = &tensors_.emplace_back(BatchTensor{.name = std::string(name)});
  if (!std::holds_alternative<Values>(found->values)) found->values = Values();
  found->shape = shape;
  found->content = 0;
  Values& values = std::get<Values>(found->values);
  values.resize(static_cast<std::size_t>(shape.elements()));
  return values;
}

Batch::Ids& Batch::ids(std::string_view name, const Shape& shape) { return written<Ids>(name, shape); }
Batch::Numbers& Batch::numbers(std::string_view name, const Shape& shape) { return written<Numbers>(name, shape); }

template <typename Values>
void Batch::kept(std::string_view name, const Shape& shape, const Values& values, std::uint64_t content) {
  NORMA_ASSERT(content != 0 && std::ssize(values) == shape.elements());
  const BatchTensor* there = find(name);
  if (there != nullptr && there->content == content && there->shape == shape) return;
  written<Values>(name, shape) = values;
  own(name)->content = content;
}

void Batch::constant(std::string_view name, const Shape& shape, const Ids& values, std::uint64_t content) {
  kept(name, shape, values, content);
}
void Batch::constant(std::string_view name, const Shape& shape, const Numbers& values, std::uint64_t content) {
  kept(name, shape, values, content);
}

const BatchTensor* Batch::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const BatchTensor& one) { return one.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

const BatchTensor& Batch::tensor(std::string_view name) const {
  if (const BatchTensor* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const BatchTensor& one : tensors_) names.push_back(one.name);
  fail("the batch has no '{}'{}; it has {}", name, did_you_mean(name, names),
       names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")));
}

const Batch::Ids& Batch::ids(std::string_view name) const {
  const BatchTensor& found = tensor(name);
  if (!found.holds_ids()) fail("'{}' of the batch holds numbers; expected ids", name);
  return std::get<Ids>(found.values);
}

Batch::Ids& Batch::ids(std::string_view name) {
  Ids& found = const_cast<Ids&>(std::as_const(*this).ids(name));
  own(name)->content = 0;
  return found;
}

const Batch::Numbers& Batch::numbers(std::string_view name) const {
  const BatchTensor& found = tensor(name);
  if (found.holds_ids()) fail("'{}' of the batch holds ids; expected numbers", name);
  return std::get<Numbers>(found.values);
}

Batch Batch::rows(std::int64_t first, std::int64_t count) const {
  Batch part;
  for (const BatchTensor& whole : tensors_) {
    const std::int64_t all = whole.shape[0], width = whole.shape.elements() / all;
    const std::int64_t there = std::clamp<std::int64_t>(all - first, 0, count);
    BatchTensor some{.name = whole.name, .shape = whole.shape.with(0, count)};
    std::visit(
        [&](const auto& values) {
          std::decay_t<decltype(values)> copy(static_cast<std::size_t>(count * width));
          std::copy_n(values.begin() + first * width, there * width, copy.begin());
          some.values = std::move(copy);
        },
        whole.values);
    part.tensors_.push_back(std::move(some));
  }
  return part;
}

}  // namespace norma
