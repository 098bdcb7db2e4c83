#include "bench/onednn.h"

#include <algorithm>
#include <dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "bench/timing.h"
#include "ops/convolution_sizes.h"

extern "C" {  // of libgomp, whose header comes with g++ alone
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace norma::bench {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

// One primitive with memory in the layouts that it asked for.
class Run {
 public:
  Run(const dnnl::engine& engine, const dnnl::primitive& primitive) : engine_(engine), primitive_(primitive) {}
  void give(int index, const memory::desc& desc) {
    memory one(desc, engine_);
    std::fill_n(static_cast<float*>(one.get_data_handle()), desc.get_size() / sizeof(float), 0.1f);
    arguments_.emplace(index, one);
  }
  void operator()(const dnnl::stream& stream) const { primitive_.execute(stream, arguments_); }

 private:
  const dnnl::engine& engine_;
  dnnl::primitive primitive_;
  Arguments arguments_;
};

void add_passes(const dnnl::engine& engine, const ConvolutionShape& s, bool needs_data, std::vector<Run>& runs) {
  const auto any = [](const memory::dims& dims) {
    return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
  };
  const memory::desc x = any({s.batch, s.in, s.height, s.width}), y = any({s.batch, s.out, s.out_height, s.out_width});
  const memory::desc w = s.groups == 1
                             ? any({s.out, s.in, s.kernel_height, s.kernel_width})
                             : any({s.groups, s.out / s.groups, s.in / s.groups, s.kernel_height, s.kernel_width});
  const auto behind = [&](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    return std::max<std::int64_t>(0, (out - 1) * s.stride + kernel - in - s.padding);
  };
  const memory::dims strides = {s.stride, s.stride}, none = {0, 0}, before = {s.padding, s.padding},
                     after = {behind(s.height, s.out_height, s.kernel_height),
                              behind(s.width, s.out_width, s.kernel_width)};
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, x, w, y, strides, none, before, after}, engine);
  Run& one = runs.emplace_back(engine, dnnl::convolution_forward(forward));
  one.give(DNNL_ARG_SRC, forward.src_desc());
  one.give(DNNL_ARG_WEIGHTS, forward.weights_desc());
  one.give(DNNL_ARG_DST, forward.dst_desc());
  if (needs_data) {
    const dnnl::convolution_backward_data::primitive_desc data({direct, x, w, y, strides, none, before, after}, engine,
                                                               forward);
    Run& two = runs.emplace_back(engine, dnnl::convolution_backward_data(data));
    two.give(DNNL_ARG_DIFF_DST, data.diff_dst_desc());
    two.give(DNNL_ARG_WEIGHTS, data.weights_desc());
    two.give(DNNL_ARG_DIFF_SRC, data.diff_src_desc());
  }
  const dnnl::convolution_backward_weights::primitive_desc weights({direct, x, w, y, strides, none, before, after},
                                                                   engine, forward);
  Run& three = runs.emplace_back(engine, dnnl::convolution_backward_weights(weights));
  three.give(DNNL_ARG_SRC, weights.src_desc());
  three.give(DNNL_ARG_DIFF_DST, weights.diff_dst_desc());
  three.give(DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc());
}

}  // namespace

double onednn_convolution_seconds(const Graph& graph, int threads, double seconds) {
  const int before = omp_get_max_threads();
  if (threads > 0) omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<Run> runs;
  runs.reserve(3 * graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    const auto* const op = dynamic_cast<const Conv2d*>(node.op.get());
    if (op == nullptr) continue;
    const std::vector<Type> in = graph.input_types(node);
    const bool of_image = graph.value(node.inputs[0]).role == Role::input;  // nobody asks for its gradient
    add_passes(engine, ConvolutionSizes(op->options(), in[0].shape, in[1].shape).shape, !of_image, runs);
  }
  const Timing timing = time_repeated(
      [&] {
        for (const Run& run : runs) run(stream);
        stream.wait();
      },
      seconds);
  omp_set_num_threads(before);
  return timing.best;
}

}  // namespace norma::bench
