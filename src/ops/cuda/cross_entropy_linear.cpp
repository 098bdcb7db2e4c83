// The output projection and the loss in chunks of rows on a GPU: logits of a chunk live in scratch and are gone after
// it. Chunks follow one another, so the weight's gradient is summed in a fixed order. Of few classes, logits never
// leave the registers where loss and gradients are made together: see cross_entropy_projection.h.
#include <algorithm>

#include "device/cuda/products.h"
#include "norma/ops/cross_entropy.h"
#include "ops/cuda/cross_entropy_projection.h"

namespace norma {
namespace {

// Of logits, per member, at most. Twice as many as 576 MiB are half as many chunks: the weight's gradient is read and
// written once for each.
constexpr std::int64_t kChunkBytes = std::int64_t{1152} << 20;
// Of the products' own tiles, and of the multiprocessors that take one each: as on an H100 or H200. Elsewhere chunks
// are the same and fill the card less well.
constexpr std::int64_t kRowsOfTile = 128, kColumnsOfTile = 256, kMultiprocessors = 132;
constexpr std::int64_t kFloat = sizeof(float);

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// How often all multiprocessors take a tile of the input's gradient, chunk by chunk. It is the product that chunks make
// small: its tiles are few and long, so a turn that few take part in costs as much as one of all.
std::int64_t turns_of_chunks(std::int64_t rows, std::int64_t chunk, std::int64_t width) {
  const auto turns = [&](std::int64_t some) {
    return divide_up(divide_up(some, kRowsOfTile) * divide_up(width, kColumnsOfTile), kMultiprocessors);
  };
  return rows / chunk * turns(chunk) + (rows % chunk == 0 ? 0 : turns(rows % chunk));
}

// Rows of a chunk: of the few numbers of chunks that fit, the one with the fewest turns.
std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t width, std::int64_t row_bytes) {
  const std::int64_t fitting = std::max(kChunkBytes / row_bytes / kRowsOfTile * kRowsOfTile, kRowsOfTile);
  const std::int64_t fewest = divide_up(rows, fitting);
  const auto even = [&](std::int64_t chunks) {
    return std::min(rows, divide_up(divide_up(rows, chunks), kRowsOfTile) * kRowsOfTile);
  };
  std::int64_t best = even(fewest);
  for (std::int64_t chunks = fewest + 1; chunks < fewest + 8; ++chunks) {
    if (turns_of_chunks(rows, even(chunks), width) < turns_of_chunks(rows, best, width)) best = even(chunks);
  }
  return best;
}

struct ProjectionSizes {
  std::int64_t rows, width, classes;
  std::int64_t chunk;  // rows at a time
  bool transposed;     // W[classes, width]
  std::int32_t ignore;
  DType dtype;           // of x, W and the logits; the weight's gradient is f32
  std::int64_t element;  // bytes

  ProjectionSizes(Types in, const CrossEntropyOptions& options)
      : rows(in[0].shape.rows()),
        width(in[0].shape.channels()),
        classes(in[1].shape[options.weight == Transpose::yes ? 0 : 1]),
        transposed(options.weight == Transpose::yes),
        ignore(options.ignore),
        dtype(in[0].dtype),
        element(static_cast<std::int64_t>(size_of(dtype))) {
    chunk = rows_of_chunk(rows, width, classes * element);
  }

  // Scratch: the logits of a chunk, then a number per row, or one.
  std::int64_t numbers_at() const { return (chunk * classes * element + 255) / 256 * 256; }
};

// logits = x W of the chunk that begins at row `first`, into the scratch.
int project(const ProjectionSizes& s, std::int64_t first, std::int64_t rows, const cuda::Call& at) {
  const cuda::Product product{.m = rows,
                              .n = s.classes,
                              .k = s.width,
                              .transpose_b = s.transposed,
                              .a = s.dtype,
                              .b = s.dtype,
                              .c = s.dtype,
                              .math = at.math};
  return at.products->run(product, at.members,
                          {.a = at.in(0) + first * s.width * s.element, .b = at.in(1), .c = at.scratch}, at.stream);
}

cuda::CrossEntropyRows logits_of_chunk(const ProjectionSizes& s, std::int64_t first, std::int64_t rows,
                                       std::int64_t lse, const cuda::Call& at) {
  return {.members = at.members,
          .rows = rows,
          .classes = s.classes,
          .ignore = s.ignore,
          .narrow = s.dtype == DType::bf16,
          .logits = at.scratch,
          .targets = at.in(2) + first * static_cast<std::int64_t>(sizeof(std::int32_t)),
          .smoothing = at.in(3),
          .lse = lse + first * kFloat};
}

cuda::CountedRows all_rows(const ProjectionSizes& s, const cuda::Call& at) {
  return {at.members, s.rows, s.ignore, at.in(2)};
}

int forward_chunks(const ProjectionSizes& s, const cuda::Call& at) {
  const std::int64_t losses = at.scratch + s.numbers_at();
  for (std::int64_t first = 0; first < s.rows; first += s.chunk) {
    const std::int64_t rows = std::min(s.chunk, s.rows - first);
    if (const int error = project(s, first, rows, at)) return error;
    const cuda::CrossEntropyRows chunk = logits_of_chunk(s, first, rows, at.out(1), at);
    if (const int error = cuda::row_losses(chunk, losses + first * kFloat, at.stream)) return error;
  }
  return cuda::mean_loss(all_rows(s, at), losses, at.out(0), at.stream);
}

// dx = dlogits W^T
int project_back(const ProjectionSizes& s, std::int64_t first, std::int64_t rows, std::int64_t dx,
                 const cuda::Call& at) {
  const cuda::Product product{.m = rows,
                              .n = s.width,
                              .k = s.classes,
                              .transpose_b = !s.transposed,
                              .a = s.dtype,
                              .b = s.dtype,
                              .c = s.dtype,
                              .math = at.math};
  return at.products->run(product, at.members, {.a = at.scratch, .b = at.in(1), .c = dx + first * s.width * s.element},
                          at.stream);
}

// dW[d, V] += x^T dlogits, or for a tied weight dW[V, d] += dlogits^T x; the first chunk writes.
int add_weight_gradient(const ProjectionSizes& s, std::int64_t first, std::int64_t rows, std::int64_t dweight,
                        const cuda::Call& at) {
  const cuda::Product product{.m = s.transposed ? s.classes : s.width,
                              .n = s.transposed ? s.width : s.classes,
                              .k = rows,
                              .transpose_a = true,
                              .a = s.dtype,
                              .b = s.dtype,
                              .math = at.math,
                              .accumulate = first > 0};
  const std::int64_t x = at.in(0) + first * s.width * s.element;
  return at.products->run(product, at.members,
                          {.a = s.transposed ? at.scratch : x,
                           .b = s.transposed ? x : at.scratch,
                           .c = dweight,
                           .c0 = first > 0 ? dweight : cuda::kAbsent},
                          at.stream);
}

int backward_chunks(const ProjectionSizes& s, const cuda::Call& at) {
  const std::int64_t scale = at.scratch + s.numbers_at();
  if (const int error = cuda::gradient_scale(all_rows(s, at), at.in(5), scale, at.stream)) return error;
  for (std::int64_t first = 0; first < s.rows; first += s.chunk) {
    const std::int64_t rows = std::min(s.chunk, s.rows - first);
    if (const int error = project(s, first, rows, at)) return error;
    const cuda::CrossEntropyRows chunk = logits_of_chunk(s, first, rows, at.in(4), at);
    if (const int error = cuda::row_gradients(chunk, scale, at.scratch, at.stream)) return error;
    if (const int error = project_back(s, first, rows, at.out(0), at)) return error;
    if (const int error = add_weight_gradient(s, first, rows, at.out(1), at)) return error;
  }
  return 0;
}

// Of the rows of a chunk: loss, log-sum-exp and dx; the scratch has the gradients of their logits.
int losses_and_gradients_of_chunk(const ProjectionSizes& s, std::int64_t first, std::int64_t rows, std::int64_t losses,
                                  std::int64_t scale, const cuda::Call& at) {
  const cuda::CrossEntropyRows chunk = logits_of_chunk(s, first, rows, at.out(1), at);
  const std::int64_t to_first = first * s.width * s.element;
  const cuda::ProjectedRows projected{.rows = chunk,
                                      .width = s.width,
                                      .transposed = s.transposed,
                                      .x = at.in(0) + to_first,
                                      .weight = at.in(1),
                                      .dx = at.out(2) + to_first};
  if (cuda::fits(projected)) return cuda::projected_losses_and_gradients(projected, losses, scale, at.stream);
  if (const int error = project(s, first, rows, at)) return error;
  if (const int error = cuda::row_losses_and_gradients(chunk, losses, scale, at.stream)) return error;
  return project_back(s, first, rows, at.out(2), at);
}

// Scratch: the logits of a chunk, then a loss per row, then the scale.
int forward_and_backward_chunks(const ProjectionSizes& s, const cuda::Call& at) {
  const std::int64_t losses = at.scratch + s.numbers_at(), scale = losses + s.rows * kFloat;
  if (const int error = cuda::gradient_scale(all_rows(s, at), at.in(4), scale, at.stream)) return error;
  for (std::int64_t first = 0; first < s.rows; first += s.chunk) {
    const std::int64_t rows = std::min(s.chunk, s.rows - first);
    if (const int error = losses_and_gradients_of_chunk(s, first, rows, losses + first * kFloat, scale, at))
      return error;
    if (const int error = add_weight_gradient(s, first, rows, at.out(3), at)) return error;
  }
  return cuda::mean_loss(all_rows(s, at), losses, at.out(0), at.stream);
}

}  // namespace

cuda::Program cuda_kernel(const LinearCrossEntropyGradient& op, Types in, Types) {
  const ProjectionSizes s(in, op.options());
  return {.launch = [s](const cuda::Call& at) { return forward_and_backward_chunks(s, at); },
          .scratch_bytes = s.numbers_at() + (s.rows + 1) * kFloat};
}

cuda::Program cuda_kernel(const LinearCrossEntropy& op, Types in, Types) {
  const ProjectionSizes s(in, op.options());
  return {.launch = [s](const cuda::Call& at) { return forward_chunks(s, at); },
          .scratch_bytes = s.numbers_at() + s.rows * kFloat};
}

cuda::Program cuda_kernel(const LinearCrossEntropyBackward& op, Types in, Types) {
  const ProjectionSizes s(in, op.options());
  return {.launch = [s](const cuda::Call& at) { return backward_chunks(s, at); },
          .scratch_bytes = s.numbers_at() + kFloat};
}

}  // namespace norma
