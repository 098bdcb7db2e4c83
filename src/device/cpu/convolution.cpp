#include "device/cpu/convolution.h"

#include <algorithm>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "device/cpu/sequential_library.h"
#include "device/cpu/winograd.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"

namespace norma {
namespace {

using dnnl::memory;
using Pass = ConvolutionShape::Pass;

constexpr std::int64_t kCompilingConvolution = std::int64_t{64} << 20;  // bytes, with room to spare

const dnnl::engine& convolution_engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

void check_done(dnnl_status_t status) { NORMA_ASSERT(status == dnnl_success); }

memory::desc image_desc(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return {{n, c, h, w}, memory::data_type::f32, {h * w * c, 1, w * c, c}};
}

memory::dims weight_dims(const ConvolutionShape& s) {
  if (s.groups == 1) return {s.out, s.in, s.kernel_height, s.kernel_width};
  return {s.groups, s.out / s.groups, s.in / s.groups, s.kernel_height, s.kernel_width};
}

memory::desc plain_weight(const ConvolutionShape& s) {
  const std::int64_t row = s.in / s.groups * s.out;
  if (s.groups == 1) return {weight_dims(s), memory::data_type::f32, {1, s.out, s.kernel_width * row, row}};
  return {weight_dims(s), memory::data_type::f32, {s.out / s.groups, 1, s.out, s.kernel_width * row, row}};
}

// One primitive with its memories, which belong to the thread and are re-aimed at each call: no allocation inside a
// step.
class Primitive {
 public:
  struct Argument {
    int index;
    memory::desc desc;
  };

  void set(const dnnl::primitive& primitive, std::vector<Argument> arguments, const memory::desc& scratchpad) {
    primitive_ = primitive;
    arguments_ = std::move(arguments);
    arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  }
  std::int64_t worker_bytes() const { return align_up(static_cast<std::int64_t>(arguments_.back().desc.get_size())); }

  void run(std::initializer_list<const void*> data) const {
    thread_local std::map<const Primitive*, Handles> handles;
    Handles& h = handles[this];
    if (h.memories.empty()) h = Handles(arguments_);
    NORMA_ASSERT(data.size() == h.memories.size() && h.memories.size() <= kMost);
    dnnl_exec_arg_t given[kMost];
    std::size_t i = 0;
    for (const void* const one : data) {
      check_done(dnnl_memory_set_data_handle(h.memories[i].get(), const_cast<void*>(one)));
      given[i] = {arguments_[i].index, h.memories[i].get()};
      ++i;
    }
    check_done(dnnl_primitive_execute(primitive_.get(), h.stream.get(), static_cast<int>(i), given));
  }

 private:
  static constexpr std::size_t kMost = 4;
  struct Handles {
    Handles() = default;
    explicit Handles(const std::vector<Argument>& arguments) : stream(convolution_engine()) {
      for (const Argument& one : arguments) memories.emplace_back(one.desc, convolution_engine(), nullptr);
    }
    std::vector<memory> memories;
    dnnl::stream stream;
  };

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;  // the scratchpad last
};

class DnnlConvolution final : public Convolution {
 public:
  explicit DnnlConvolution(const ConvolutionShape& s) {
    require_memory(kCompilingConvolution, "compiling a convolution");  // the library would not notice
    attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const memory::desc x = image_desc(s.batch, s.height, s.width, s.in);
    const memory::desc y = image_desc(s.batch, s.out_height, s.out_width, s.out);
    const memory::desc any(weight_dims(s), memory::data_type::f32, memory::format_tag::any);
    const memory::dims strides = {s.stride, s.stride}, dilates = {s.dilation - 1, s.dilation - 1},
                       before = {s.padding, s.padding}, after = {behind(s, true), behind(s, false)};
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {s.pass == Pass::forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, direct, x,
         any, y, strides, dilates, before, after},
        attributes_, convolution_engine());
    switch (s.pass) {
      case Pass::forward:
        packed_ = forward.weights_desc();
        main_.set(dnnl::convolution_forward(forward),
                  {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, packed_}, {DNNL_ARG_DST, y}}, forward.scratchpad_desc());
        break;
      case Pass::data: {
        const dnnl::convolution_backward_data::primitive_desc back({direct, x, any, y, strides, dilates, before, after},
                                                                   attributes_, convolution_engine(), forward);
        packed_ = back.weights_desc();
        main_.set(dnnl::convolution_backward_data(back),
                  {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, packed_}, {DNNL_ARG_DIFF_SRC, x}},
                  back.scratchpad_desc());
        break;
      }
      case Pass::weights: {
        const dnnl::convolution_backward_weights::primitive_desc back(
            {direct, x, any, y, strides, dilates, before, after}, attributes_, convolution_engine(), forward);
        packed_ = back.diff_weights_desc();
        main_.set(dnnl::convolution_backward_weights(back),
                  {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_DIFF_WEIGHTS, packed_}},
                  back.scratchpad_desc());
        break;
      }
    }
    set_reorder(pack_, plain_weight(s), packed_);
    set_reorder(unpack_, packed_, plain_weight(s));
  }

  std::int64_t packed_floats() const override { return static_cast<std::int64_t>(packed_.get_size()) / 4; }
  bool packs_like(const Convolution& other) const override {
    const auto* const one = dynamic_cast<const DnnlConvolution*>(&other);
    return one != nullptr && packed_ == one->packed_;
  }
  std::int64_t worker_bytes() const override {
    return std::max({main_.worker_bytes(), pack_.worker_bytes(), unpack_.worker_bytes()});
  }
  void pack(const float* weight, float* packed, std::byte* worker) const override {
    pack_.run({weight, packed, worker});
  }
  void unpack(const float* packed, float* weight, std::byte* worker) const override {
    unpack_.run({packed, weight, worker});
  }
  void run(const float* first, const float* second, float* result, std::byte* worker) const override {
    main_.run({first, second, result, worker});
  }

 private:
  // Padding behind the last row or column, so that the sizes come out; none where the stride leaves some unread.
  static std::int64_t behind(const ConvolutionShape& s, bool rows) {
    const std::int64_t in = rows ? s.height : s.width, out = rows ? s.out_height : s.out_width,
                       kernel = rows ? s.kernel_height : s.kernel_width;
    return std::max<std::int64_t>(0, (out - 1) * s.stride + (kernel - 1) * s.dilation + 1 - in - s.padding);
  }

  void set_reorder(Primitive& reorder, const memory::desc& from, const memory::desc& to) {
    const dnnl::reorder::primitive_desc desc(convolution_engine(), from, convolution_engine(), to, attributes_);
    reorder.set(dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, desc.scratchpad_desc());
  }

  dnnl::primitive_attr attributes_;
  memory::desc packed_;
  Primitive main_, pack_, unpack_;
};

}  // namespace

std::shared_ptr<const Convolution> make_convolution(const ConvolutionShape& shape) {
  static std::mutex mutex;
  static std::map<ConvolutionShape, std::shared_ptr<const Convolution>> compiled;
  const std::lock_guard lock(mutex);
  const SequentialLibrary sequential;  // see make_gemm
  std::shared_ptr<const Convolution>& entry = compiled[shape];
  if (entry != nullptr) return entry;
  try {
    entry = fits_winograd(shape) ? make_winograd(shape) : std::make_shared<DnnlConvolution>(shape);
  } catch (const dnnl::error& problem) {
    if (problem.status == dnnl_out_of_memory) throw std::bad_alloc();
    fail("oneDNN refuses a convolution of {} images {} x {} x {} to {} x {} x {}: {}", shape.batch, shape.height,
         shape.width, shape.in, shape.out_height, shape.out_width, shape.out, problem.what());
  }
  return entry;
}

}  // namespace norma
