// The kernels of attention over neighbours, one node at a time; the tiles are in neighbour_attention.cpp.
#pragma once

#include <cstdint>

namespace norma {

struct AttentionSizes {
  std::int64_t nodes, heads, width, edges;
  double slope;
};

template <typename T>
struct AttentionTensors {
  const T *x, *query, *key;  // [nodes, heads * width], [nodes, heads] twice
  const T* logs = nullptr;   // [nodes, heads]
  const T* dy = nullptr;     // [nodes, heads * width]
  const T* means = nullptr;  // dy . y, [nodes, heads]
};

template <typename T>
struct NeighbourAttentionFunctions {
  // Of the neighbours to[0, count) of one node.
  void (*forward)(const AttentionSizes& s, const AttentionTensors<T>& t, std::int64_t node, const std::int32_t* to,
                  std::int64_t count, T* y, T* logs);
  void (*backward)(const AttentionSizes& s, const AttentionTensors<T>& t, std::int64_t node, const std::int32_t* to,
                   std::int64_t count, T* dx, T* dquery, T* dkey);
  T (*dot)(const T* a, const T* b, std::int64_t n);
};

template <typename T>
NeighbourAttentionFunctions<T> neighbour_attention_functions();

}  // namespace norma
