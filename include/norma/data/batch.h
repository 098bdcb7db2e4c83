// What a model reads at once: tensors of ids or numbers, by name.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "norma/core/shape.h"

namespace norma {

// The target of a position that is not counted in the loss.
inline constexpr std::int32_t kIgnored = -100;

// A number that no other values of this process have.
std::uint64_t new_content();

struct BatchTensor {
  using Ids = std::vector<std::int32_t>;
  using Numbers = std::vector<float>;

  std::string name;
  Shape shape = {};
  std::variant<Ids, Numbers> values = {};
  // Tensors of the same number, other than 0, hold the same values: who has read one needs no other.
  std::uint64_t content = 0;

  bool holds_ids() const { return values.index() == 0; }
};

// Sources write tensors of the same names and shapes into it again and again; memory is taken the first time.
class Batch {
 public:
  using Ids = BatchTensor::Ids;
  using Numbers = BatchTensor::Numbers;

  // To be written: the tensor of that name with so many elements, made where there is none. What it held stays where
  // the shape does.
  Ids& ids(std::string_view name, const Shape& shape);
  Numbers& numbers(std::string_view name, const Shape& shape);

  // The same with values that never change and have a number for it (new_content()): where they are there already,
  // nothing is copied. Whoever asks for the tensor to write it takes the number away.
  void constant(std::string_view name, const Shape& shape, const Ids& values, std::uint64_t content);
  void constant(std::string_view name, const Shape& shape, const Numbers& values, std::uint64_t content);

  // As it is. Throws Error that names the nearest and all that there are.
  Ids& ids(std::string_view name);
  const Ids& ids(std::string_view name) const;
  const Numbers& numbers(std::string_view name) const;
  const BatchTensor& tensor(std::string_view name) const;

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const BatchTensor* find(std::string_view name) const;
  const std::deque<BatchTensor>& tensors() const { return tensors_; }

  // Rows `first`, `first + 1`, ... of every tensor along its first axis, `count` in all. What lies behind the end is 0.
  Batch rows(std::int64_t first, std::int64_t count) const;

 private:
  template <typename Values>
  Values& written(std::string_view name, const Shape& shape);
  template <typename Values>
  void kept(std::string_view name, const Shape& shape, const Values& values, std::uint64_t content);
  BatchTensor* own(std::string_view name) { return const_cast<BatchTensor*>(std::as_const(*this).find(name)); }

  std::deque<BatchTensor> tensors_;  // a handful; references stay when more come
};

}  // namespace norma
