// Every op in some application, with its backward pass where it has one.
#pragma once

#include <functional>
#include <vector>

#include "norma/norms/norm.h"
#include "norma/ops/activation.h"
#include "norma/ops/attention.h"
#include "norma/ops/attention_probe.h"
#include "norma/ops/column_sums.h"
#include "norma/ops/convolution.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/dropout.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/gradient_norm.h"
#include "norma/ops/linear.h"
#include "norma/ops/linear_slope.h"
#include "norma/ops/matmul.h"
#include "norma/ops/matmul_slope.h"
#include "norma/ops/modulate.h"
#include "norma/ops/neighbour_affine.h"
#include "norma/ops/neighbour_attention.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/one_hot.h"
#include "norma/ops/optimiser.h"
#include "norma/ops/pooling.h"
#include "norma/ops/reduce.h"
#include "norma/ops/rope.h"
#include "norma/ops/scaled_add.h"
#include "norma/ops/segments.h"
#include "norma/ops/softmax.h"
#include "norma/ops/sparse_product.h"
#include "norma/ops/statistics.h"
#include "norma/ops/stop_gradient.h"
#include "norma/ops/upsample.h"
#include "norma/ops/views.h"
#include "norma/ops/weight_gradients.h"

namespace norma::test {

using Example = std::function<Wire(Graph&, DType)>;

struct Sizes {
  std::int64_t rows = 4;
  std::int64_t width = 6;  // even
};

inline Wire one(Graph& g, DType dtype, const char* name) { return g.input(name, {{1}, dtype}); }

// Integer inputs are called "ids" and "classes", both below the width, or "key".
inline std::vector<Example> examples(Sizes sizes = {}) {
  const auto [rows, width] = sizes;
  const auto matrix = [=](Graph& g, DType t, const char* name = "x") { return g.parameter(name, {{rows, width}, t}); };
  const auto square_matrix = [=](Graph& g, DType t) { return g.parameter("w", {{width, width}, t}); };
  const auto vector = [=](Graph& g, DType t, const char* name = "y") { return g.parameter(name, {{width}, t}); };
  const auto classes = [=](Graph& g) { return g.input("classes", {{rows}, DType::i32}); };
  std::vector<Example> all = {
      [=](Graph& g, DType t) { return reshape(matrix(g, t), {rows * width}); },
      [=](Graph& g, DType t) { return stop_gradient(matrix(g, t)); },
      [=](Graph& g, DType t) { return slice(matrix(g, t), 1, 1, width / 2); },
      [=](Graph& g, DType t) { return pad(matrix(g, t), 1, 1, width + 3); },
      [=](Graph& g, DType t) {
        return concat_last(Wires{matrix(g, t), matrix(g, t, "y")});
      },
      [=](Graph& g, DType t) { return swap_axes(matrix(g, t), 0, 1); },
      [=](Graph& g, DType t) { return cast(matrix(g, t), t == DType::f32 ? DType::f64 : DType::f32); },
      [=](Graph& g, DType t) { return exp(matrix(g, t)); },
      [=](Graph& g, DType t) { return matrix(g, t) + matrix(g, t, "y"); },
      [=](Graph& g, DType t) { return matrix(g, t) * vector(g, t); },
      [=](Graph& g, DType t) { return mean_last(matrix(g, t)); },
      [=](Graph& g, DType t) {
        return concat_last(column_sums(Wires{matrix(g, t), g.parameter("y", {{2, 3, rows}, t})}));
      },
      [=](Graph& g, DType t) {
        return broadcast_to(vector(g, t, "x"), {rows, width});
      },
      [=](Graph& g, DType t) { return matmul_rows(matrix(g, t), square_matrix(g, t)); },
      [=](Graph& g, DType t) { return linear(matrix(g, t), square_matrix(g, t), {}, Activation::gelu); },
      [=](Graph& g, DType t) {
        return matmul_slope(matrix(g, t), square_matrix(g, t), matrix(g, t, "z"), Activation::gelu_tanh,
                            Transpose::yes);
      },
      [=](Graph& g, DType t) {
        const Wire x = matrix(g, t), dy = matrix(g, t, "dy"), bias = g.parameter("b", {{width}, t});
        const Wires both = linear_slope(dy, square_matrix(g, t), x, g.parameter("v", {{width, width}, t}), bias,
                                        Activation::silu, Transpose::yes);
        return both[0] + both[1];
      },
      [=](Graph& g, DType t) {
        const Wire x = matrix(g, t), y = matrix(g, t, "y"), u = matrix(g, t, "u");
        const Wires gradients = weight_gradients(Wires{x, y, u, x}, {false, true});
        return gradients[0] + gradients[1] * gradients[2];
      },
      [=](Graph& g, DType t) { return activate(matrix(g, t), Activation::silu); },
      [=](Graph& g, DType t) { return swiglu(matrix(g, t)); },
      [=](Graph& g, DType t) { return scaled_add(matrix(g, t), one(g, t, "a"), matrix(g, t, "y")); },
      [=](Graph& g, DType t) { return softmax(matrix(g, t)); },
      [=](Graph& g, DType t) {
        return dropout(matrix(g, t), one(g, t, "p"), g.input("key", {{4}, DType::i32}), "here");
      },
      [=](Graph& g, DType t) {
        return embedding(matrix(g, t), g.input("ids", {{rows + 1}, DType::i32}));
      },
      [=](Graph& g, DType t) {
        return rope(g.parameter("x", {{2, rows, 1, width}, t}), {});
      },
      [=](Graph& g, DType t) { return one_hot(classes(g), width, -100, t); },
      [=](Graph& g, DType t) { return cross_entropy(matrix(g, t), classes(g)); },
      [=](Graph& g, DType t) { return linear_cross_entropy(matrix(g, t), square_matrix(g, t), classes(g)); },
      [=](Graph& g, DType t) {
        const Wire x = attention_packed(g.parameter("x", {{2, rows, 6 * (width / 2)}, t}), {.heads = 2});
        const Node node = g.nodes().back();
        const Wire in(&g, node.inputs[0]);
        attention_probe(dynamic_cast<const Attention&>(*node.op), Wires{in});
        attention_probes(dynamic_cast<const Attention&>(*node.op), 2, Wires{in, in});
        return x;
      },
      [=](Graph& g, DType t) { return statistics(matrix(g, t)); },
      [=](Graph& g, DType t) {
        return concat_last(statistics_of_several(Wires{matrix(g, t), g.parameter("y", {{2, 3, rows}, t})}));
      },
      [=](Graph& g, DType t) { return accumulate_gradient(matrix(g, t), one(g, t, "first"), "p"); },
      [=](Graph& g, DType t) { return gradient_norm(Wires{matrix(g, t)}, one(g, t, "clip")).scale; },
      [=](Graph& g, DType t) {
        return optimise(OptimiserKind::adam, Wires{matrix(g, t)}, Wires{matrix(g, t, "y")},
                        g.input("control", {{OptimiserControl::size}, t}), one(g, t, "scale"), {{}});
      }};
  for (const NormInfo& info : norms()) {
    all.push_back([=, &info](Graph& g, DType t) {
      const Wire x = g.parameter("x", {{2, rows, width}, t});
      return apply_norm(info, x, declare_norm(g, info, width, t), {.groups = 2});
    });
  }
  // Scaled residuals under a norm, the sum read elsewhere too: numbers, and one for each channel.
  all.push_back([=](Graph& g, DType t) {
    const Wire sum = matrix(g, t) * one(g, t, "a") + matrix(g, t, "y");
    return layer_norm(sum, vector(g, t, "gain"), vector(g, t, "bias")) + sum * 0.5;
  });
  all.push_back([=](Graph& g, DType t) {
    const Wire sum = matrix(g, t) + matrix(g, t, "y") * vector(g, t, "v");
    return rms_norm(sum, vector(g, t, "gain"));
  });
  return all;
}

// And those whose sizes are their own; a GPU has tests for them that take every way of its kernels.
inline std::vector<Example> cpu_examples() {
  std::vector<Example> all = examples();
  all.push_back([](Graph& g, DType t) {
    return conv2d(g.parameter("x", {{2, 4, 4, 3}, t}), g.parameter("w", {{3, 3, 3, 5}, t}), {.padding = 1});
  });
  all.push_back([](Graph& g, DType t) {
    return neighbour_sum(g.parameter("x", {{4, 6}, t}), g.input("edges", {{2, 5}, DType::i32}));
  });
  all.push_back([](Graph& g, DType t) {
    return modulate(g.parameter("x", {{2, 3, 4}, t}), g.parameter("scale", {{2, 4}, t}),
                    g.parameter("shift", {{2, 4}, t}));
  });
  all.push_back([](Graph& g, DType t) {
    return sparse_product(g.parameter("x", {{3, 17}, t}), g.parameter("w", {{17, 5}, t}));
  });
  all.push_back([](Graph& g, DType t) { return upsample(g.parameter("x", {{2, 3, 4, 5}, t})); });
  const auto nodes = [](Graph& g, DType t) { return g.parameter("x", {{4, 6}, t}); };
  const auto edges = [](Graph& g) { return g.input("edges", {{2, 5}, DType::i32}); };
  all.push_back([=](Graph& g, DType t) {
    return neighbour_sum(nodes(g, t), edges(g), g.input("left", {{4}, t}), g.input("right", {{4}, t}));
  });
  all.push_back([=](Graph& g, DType t) {
    const Wire in[] = {nodes(g, t), edges(g), g.parameter("b", {{6}, t})};
    return g.apply(std::make_shared<NeighbourAffine>(false, false, Activation::gelu), in)[0];
  });
  all.push_back([=](Graph& g, DType t) { return neighbour_max(nodes(g, t), edges(g)); });
  all.push_back([=](Graph& g, DType t) {
    return neighbour_attention(nodes(g, t), g.parameter("query", {{4, 2}, t}), g.parameter("key", {{4, 2}, t}),
                               edges(g), {.heads = 2});
  });
  all.push_back([=](Graph& g, DType t) {
    return segment_reduce(Segmented::mean, nodes(g, t), g.input("ids", {{4}, DType::i32}), 2);
  });
  all.push_back([](Graph& g, DType t) { return max_pool(g.parameter("x", {{2, 4, 4, 3}, t})); });
  return all;
}

}  // namespace norma::test
