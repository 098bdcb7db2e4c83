// Gather of rows, its transpose, and tables of positions.
#include "norma/ops/embedding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {
namespace {

Shape with_channels(const Shape& rows, std::int64_t channels) {
  std::vector<std::int64_t> dims(rows.dims().begin(), rows.dims().end());
  dims.push_back(channels);
  return Shape(std::span<const std::int64_t>(dims));
}

void check_ids(const Type& ids) {
  if (ids.dtype != DType::i32) fail("ids must be i32 but are {}", ids.str());
}

template <typename T>
CpuKernel gather_kernel(std::int64_t vocabulary, std::int64_t rows, std::int64_t d, std::int64_t time) {
  const Tiling tiling(rows, std::max<std::int64_t>(1, 16384 / d));
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        const T* table = call.in<T>(0);                      // [vocabulary, d]
                        const std::int32_t* ids = call.in<std::int32_t>(1);  // [rows]
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          const std::int64_t id = ids[row];
                          T* y = call.out<T>(0) + row * d;
                          if (id < 0 || id >= vocabulary) {
                            std::fill_n(y, d, std::numeric_limits<T>::quiet_NaN());
                          } else {
                            std::copy_n(table + id * d, d, y);
                          }
                          if (time == 0) continue;
                          const T* position = call.in<T>(2) + row % time * d;
                          for (std::int64_t c = 0; c < d; ++c) y[c] += position[c];
                        }
                      }}}};
}

// Tiles are blocks of columns, each walking all rows in order: no two tiles touch one number, and the order of every
// sum is that of the rows.
template <typename T>
CpuKernel scatter_kernel(std::int64_t vocabulary, std::int64_t rows, std::int64_t d, bool onto) {
  const Tiling clearing(vocabulary * d, 65536, 64), columns(d, 32, 16);
  return {.phases = {{clearing.tiles,
                      [=](const Call& call, std::int64_t tile) {
                        const std::int64_t begin = clearing.begin(tile), end = clearing.end(tile);
                        T* out = call.out<T>(0);
                        if (!onto) {
                          std::fill(out + begin, out + end, T{0});
                        } else if (call.in<T>(2) != out) {
                          std::copy(call.in<T>(2) + begin, call.in<T>(2) + end, out + begin);
                        }
                      }},
                     {columns.tiles, [=](const Call& call, std::int64_t tile) {
                        const std::int32_t* ids = call.in<std::int32_t>(0);  // [rows]
                        const T* dy = call.in<T>(1);                         // [rows, d]
                        const std::int64_t begin = columns.begin(tile), width = columns.end(tile) - begin;
                        for (std::int64_t row = 0; row < rows; ++row) {
                          const std::int64_t id = ids[row];
                          if (id < 0 || id >= vocabulary) continue;
                          const T* from = dy + row * d + begin;
                          T* to = call.out<T>(0) + id * d + begin;
                          for (std::int64_t c = 0; c < width; ++c) to[c] += from[c];
                        }
                      }}}};
}

}  // namespace

std::vector<Type> Embedding::infer(std::span<const Type> in) const {
  check_count(in.size(), in.size() == 3 ? 3 : 2);
  check_computes(in[0]);
  check_ids(in[1]);
  if (in[0].shape.rank() != 2) fail("the table must be [vocabulary, d] but is {}", in[0].shape.str());
  if (in.size() == 3) check_type("positions", in[2], {{in[1].shape[-1], in[0].shape[1]}, in[0].dtype});
  return {{with_channels(in[1].shape, in[0].shape[1]), in[0].dtype}};
}

Wires Embedding::vjp(const VjpContext& context) const {
  const Wire in[] = {context.in[1], context.dout[0]};
  Wires gradients = {context.graph().apply(std::make_shared<EmbeddingBackward>(context.in[0].shape()[0]), in)[0],
                     Wire()};
  if (context.in.size() == 3) gradients.push_back(sum_to(context.dout[0], context.in[2].shape()));
  return gradients;
}

Cost Embedding::cost(std::span<const Type> in, std::span<const Type> out) const {
  // Only the rows that are asked for are read.
  const double rows = static_cast<double>(out[0].shape.elements()) * static_cast<double>(size_of(in[0].dtype));
  double bytes = static_cast<double>(in[1].bytes()) + rows;
  for (const Type& type : in.subspan(2)) bytes += static_cast<double>(type.bytes());
  for (const Type& type : out) bytes += static_cast<double>(type.bytes());
  return {.flops = in.size() == 3 ? static_cast<double>(out[0].shape.elements()) : 0, .bytes = bytes};
}

CpuKernel cpu_kernel(const Embedding&, Types in, Types) {
  const std::int64_t vocabulary = in[0].shape[0], d = in[0].shape[1], rows = in[1].shape.elements();
  const std::int64_t time = in.size() == 3 ? in[2].shape[0] : 0;
  return in[0].dtype == DType::f32 ? gather_kernel<float>(vocabulary, rows, d, time)
                                   : gather_kernel<double>(vocabulary, rows, d, time);
}

std::vector<Type> EmbeddingBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), in.size() == 3 ? 3 : 2);
  check_ids(in[0]);
  check_computes(in[1]);
  const std::int64_t d = in[1].shape.channels();
  check_type("the gradient", in[1], {with_channels(in[0].shape, d), in[1].dtype});
  const Type table{{vocabulary_, d}, in[1].dtype};
  if (in.size() == 3) check_type("what the sums are added to", in[2], table);
  return {table};
}

Wires EmbeddingBackward::vjp(const VjpContext& context) const {
  Wires gradients = {Wire(), embedding(context.dout[0], context.in[0])};
  if (context.in.size() == 3) gradients.push_back(context.dout[0]);
  return gradients;
}

void EmbeddingBackward::choose(Widths& widths) const {
  const bool dy = widths.in[1];
  widths.all(false);
  widths.in[1] = dy;
}

Cost EmbeddingBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[1].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const EmbeddingBackward& op, Types in, Types) {
  const std::int64_t rows = in[0].shape.elements(), d = in[1].shape.channels();
  const bool onto = in.size() == 3;
  return in[1].dtype == DType::f32 ? scatter_kernel<float>(op.vocabulary(), rows, d, onto)
                                   : scatter_kernel<double>(op.vocabulary(), rows, d, onto);
}

Wire embedding(Wire table, Wire ids) {
  const Wire in[] = {table, ids};
  return table.graph().apply(std::make_shared<Embedding>(), in)[0];
}

void check_tokens(std::span<const std::int32_t> ids, std::int64_t vocabulary) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      fail("token {} at position {} is outside the vocabulary of {} (0 to {})", ids[i], i, vocabulary, vocabulary - 1);
    }
  }
}

Wire add_positions(Wire x, Wire positions) {
  const Shape &shape = x.shape(), &table = positions.shape();
  if (shape.rank() < 2 || table.rank() != 2 || table[1] != shape[-1]) {
    fail("add_positions: positions [time, {}] expected for {} but {} given", shape.channels(), shape.str(),
         table.str());
  }
  if (table[0] < shape[-2]) {
    fail("add_positions: {} positions are not enough for the {} time steps of {}", table[0], shape[-2], shape.str());
  }
  return x + (table[0] == shape[-2] ? positions : slice_rows(positions, 0, shape[-2]));
}

Wire sinusoidal_positions(Graph& graph, std::string_view name, std::int64_t time, std::int64_t d, DType dtype) {
  std::vector<double> table(static_cast<std::size_t>(time * d));
  for (std::int64_t t = 0; t < time; ++t) {
    for (std::int64_t c = 0; c < d; ++c) {
      const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(d);
      const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
      table[static_cast<std::size_t>(t * d + c)] = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  if (dtype == DType::f64) return graph.constant<double>(name, {time, d}, table);
  if (dtype != DType::f32) fail("sinusoidal_positions: f32 or f64 expected, not {}", name_of(dtype));
  std::vector<float> rounded(table.size());
  std::transform(table.begin(), table.end(), rounded.begin(), [](double v) { return static_cast<float>(v); });
  return graph.constant<float>(name, {time, d}, rounded);
}

}  // namespace norma
