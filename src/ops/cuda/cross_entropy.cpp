// Softmax cross-entropy of logits and its gradient as programs of a CUDA session.
#include "norma/ops/cross_entropy.h"

#include "ops/cuda/cross_entropy_rows.h"

namespace norma {
namespace {

cuda::CrossEntropyRows rows_of_logits(const Type& logits, std::int32_t ignore) {
  cuda::CrossEntropyRows rows;
  rows.rows = logits.shape.rows();
  rows.classes = logits.shape.channels();
  rows.ignore = ignore;
  return rows;
}

cuda::CrossEntropyRows place_logits(cuda::CrossEntropyRows rows, const cuda::Call& at, std::int64_t lse) {
  rows.members = at.members;
  rows.logits = at.in(0);
  rows.targets = at.in(1);
  rows.smoothing = at.in(2);
  rows.lse = lse;
  return rows;
}

cuda::CountedRows counted_of(const cuda::CrossEntropyRows& rows) {
  return {rows.members, rows.rows, rows.ignore, rows.targets};
}

}  // namespace

cuda::Program cuda_kernel(const CrossEntropy& op, Types in, Types) {
  const cuda::CrossEntropyRows shape = rows_of_logits(in[0], op.options().ignore);
  return {.launch =
              [=](const cuda::Call& at) {
                const cuda::CrossEntropyRows rows = place_logits(shape, at, at.out(1));
                if (const int error = cuda::row_losses(rows, at.scratch, at.stream)) return error;
                return cuda::mean_loss(counted_of(rows), at.scratch, at.out(0), at.stream);
              },
          .scratch_bytes = shape.rows * static_cast<std::int64_t>(sizeof(float))};  // a loss per row
}

cuda::Program cuda_kernel(const CrossEntropyBackward& op, Types in, Types) {
  const cuda::CrossEntropyRows shape = rows_of_logits(in[0], op.options().ignore);
  return {.launch =
              [=](const cuda::Call& at) {
                const cuda::CrossEntropyRows rows = place_logits(shape, at, at.in(3));
                if (const int error = cuda::gradient_scale(counted_of(rows), at.in(4), at.scratch, at.stream)) {
                  return error;
                }
                return cuda::row_gradients(rows, at.scratch, at.out(0), at.stream);
              },
          .scratch_bytes = sizeof(float)};
}

}  // namespace norma
