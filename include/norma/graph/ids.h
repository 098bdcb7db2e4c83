// Ids of a node's values. Most nodes have a few, and these lie in the node itself: a graph of a hundred thousand nodes
// is walked many times, and a list of its own for each would be most of the walk.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace norma {

class Ids {
 public:
  Ids() = default;
  explicit Ids(std::span<const int> ids) { assign(ids); }
  Ids(std::initializer_list<int> ids) { assign(std::span(ids.begin(), ids.size())); }
  Ids(const std::vector<int>& ids) { assign(ids); }  // NOLINT: lists are put together as vectors
  Ids(const Ids& other) { assign(other); }
  Ids(Ids&& other) noexcept { swap(other); }
  Ids& operator=(const Ids& other) {
    if (this != &other) assign(other);
    return *this;
  }
  Ids& operator=(Ids&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Ids() {
    if (room_ > kHere) delete[] ids_.elsewhere;
  }

  operator std::vector<int>() const { return {begin(), end()}; }  // NOLINT: and taken apart as such

  std::size_t size() const { return static_cast<std::size_t>(size_); }
  bool empty() const { return size_ == 0; }
  int* data() { return room_ > kHere ? ids_.elsewhere : ids_.here; }
  const int* data() const { return room_ > kHere ? ids_.elsewhere : ids_.here; }
  int* begin() { return data(); }
  int* end() { return data() + size_; }
  const int* begin() const { return data(); }
  const int* end() const { return data() + size_; }
  int& operator[](std::size_t index) { return data()[index]; }
  int operator[](std::size_t index) const { return data()[index]; }
  int front() const { return data()[0]; }
  int back() const { return data()[size_ - 1]; }

  void reserve(std::size_t count) {
    if (static_cast<int>(count) <= room_) return;
    int* const larger = new int[count];
    std::copy(begin(), end(), larger);
    if (room_ > kHere) delete[] ids_.elsewhere;
    ids_.elsewhere = larger;
    room_ = static_cast<int>(count);
  }
  void push_back(int id) {
    if (size_ == room_) reserve(2 * size());
    data()[size_++] = id;
  }

  bool operator==(const Ids& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  static constexpr int kHere = 6;

  void assign(std::span<const int> ids) {
    reserve(ids.size());
    std::copy(ids.begin(), ids.end(), data());
    size_ = static_cast<int>(ids.size());
  }
  void swap(Ids& other) noexcept {
    std::swap(ids_, other.ids_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }

  union Storage {
    int here[kHere];
    int* elsewhere;  // where there are more
  };
  Storage ids_ = {};
  int size_ = 0;
  int room_ = kHere;
};

}  // namespace norma
