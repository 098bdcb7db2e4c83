#include "device/cpu/gemm.h"

#include <algorithm>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "device/cpu/sequential_library.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"

namespace norma {
namespace {

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

void check(dnnl_status_t status) { NORMA_ASSERT(status == dnnl_success); }

// What the library calls BA16a64b and the like.
GemmPanels panels_of(const dnnl::memory::desc& desc) {
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  const bool blocked = desc.data.format_kind == dnnl_blocked && blocking.inner_nblks == 2 &&
                       blocking.inner_idxs[0] == 0 && blocking.inner_idxs[1] == 1 && desc.data.offset0 == 0 &&
                       desc.data.extra.flags == 0;
  if (!blocked) return {};
  const std::int64_t rows = blocking.inner_blks[0], width = blocking.inner_blks[1];
  const GemmPanels panels{width, desc.data.padded_dims[0], desc.data.padded_dims[1] / width};
  const bool rows_follow = panels.depth == rows || blocking.strides[0] == rows * width;
  const bool panels_follow = panels.count == 1 || blocking.strides[1] == panels.depth * width;
  const bool dense = static_cast<std::int64_t>(desc.get_size()) == panels.elements() * 4;
  return rows_follow && panels_follow && dense ? panels : GemmPanels{};
}

constexpr std::int64_t kCompiling = std::int64_t{32} << 20;  // bytes that a product is compiled in, with room to spare

class DnnlGemm final : public Gemm {
 public:
  explicit DnnlGemm(const GemmShape& s) {
    using dnnl::memory;
    require_memory(kCompiling, "compiling a matrix product");  // the library would not notice
    constexpr auto f32 = memory::data_type::f32;
    a_ = memory::desc({s.m, s.k}, f32, {s.a_row, s.a_column});
    b_ = s.packed ? memory::desc({s.k, s.n}, f32, memory::format_tag::any)
                  : memory::desc({s.k, s.n}, f32, {s.b_row, s.b_column});
    c_ = memory::desc({s.m, s.n}, f32, {s.c_row, 1});
    bias_ = memory::desc({1, s.n}, f32, {s.n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops post;
      post.append_sum(1.0f);
      attributes.set_post_ops(post);
    }
    const dnnl::matmul::desc desc = s.bias ? dnnl::matmul::desc(a_, b_, bias_, c_) : dnnl::matmul::desc(a_, b_, c_);
    const dnnl::matmul::primitive_desc primitive_desc(desc, attributes, engine());
    b_ = primitive_desc.weights_desc();
    if (s.packed) panels_ = panels_of(b_);
    scratchpad_ = primitive_desc.scratchpad_desc();
    matmul_ = dnnl::matmul(primitive_desc);
    has_bias_ = s.bias;
  }

  std::int64_t worker_bytes() const override { return align_up(static_cast<std::int64_t>(scratchpad_.get_size())); }

  GemmPanels panels() const override { return panels_; }

  void run(const void* a, const void* b, const void* bias, void* c, std::byte* worker) const override {
    // Memory handles belong to the thread and are re-aimed at each call: no allocation inside a step.
    thread_local std::map<const DnnlGemm*, Handles> handles;
    Handles& h = handles[this];
    if (!h.ready) h = Handles(*this);
    aim(h.a, a);
    aim(h.b, b);
    aim(h.c, c);
    aim(h.scratchpad, worker);
    int count = 4;
    dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, h.a.get()},
                                    {DNNL_ARG_WEIGHTS, h.b.get()},
                                    {DNNL_ARG_DST, h.c.get()},
                                    {DNNL_ARG_SCRATCHPAD, h.scratchpad.get()},
                                    {}};
    if (has_bias_) {
      aim(h.bias, bias);
      arguments[count++] = {DNNL_ARG_BIAS, h.bias.get()};
    }
    check(dnnl_primitive_execute(matmul_.get(), h.stream.get(), count, arguments));
  }

 private:
  struct Handles {
    Handles() = default;
    explicit Handles(const DnnlGemm& gemm)
        : a(gemm.a_, engine(), nullptr),
          b(gemm.b_, engine(), nullptr),
          c(gemm.c_, engine(), nullptr),
          bias(gemm.bias_, engine(), nullptr),
          scratchpad(gemm.scratchpad_, engine(), nullptr),
          stream(engine()),
          ready(true) {}
    dnnl::memory a, b, c, bias, scratchpad;
    dnnl::stream stream;
    bool ready = false;
  };

  static void aim(dnnl::memory& memory, const void* data) {
    check(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)));
  }

  dnnl::memory::desc a_, b_, c_, bias_, scratchpad_;
  dnnl::matmul matmul_;
  GemmPanels panels_;
  bool has_bias_ = false;
};

class PlainGemm final : public Gemm {
 public:
  explicit PlainGemm(const GemmShape& shape) : shape_(shape) {}

  std::int64_t worker_bytes() const override { return 0; }

  void run(const void* a_data, const void* b_data, const void* bias_data, void* c_data, std::byte*) const override {
    const GemmShape& s = shape_;
    const double* a = static_cast<const double*>(a_data);
    const double* b = static_cast<const double*>(b_data);
    const double* bias = static_cast<const double*>(bias_data);
    double* c = static_cast<double*>(c_data);
    for (std::int64_t i = 0; i < s.m; ++i) {
      double* row = c + i * s.c_row;
      for (std::int64_t j = 0; j < s.n; ++j) row[j] = (s.accumulate ? row[j] : 0.0) + (s.bias ? bias[j] : 0.0);
      for (std::int64_t p = 0; p < s.k; ++p) {
        const double factor = a[i * s.a_row + p * s.a_column];
        for (std::int64_t j = 0; j < s.n; ++j) row[j] += factor * b[p * s.b_row + j * s.b_column];
      }
    }
  }

 private:
  GemmShape shape_;
};

}  // namespace

GemmShape row_major_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed) {
  GemmShape shape{.m = m, .n = n, .k = k, .c_row = n};
  shape.a_row = a_transposed ? 1 : k;
  shape.a_column = a_transposed ? m : 1;
  shape.b_row = b_transposed ? 1 : n;
  shape.b_column = b_transposed ? k : 1;
  return shape;
}

std::shared_ptr<const Gemm> make_gemm(const GemmShape& shape, DType dtype) {
  NORMA_ASSERT(dtype == DType::f32 || dtype == DType::f64);
  static std::mutex mutex;
  static std::map<std::pair<GemmShape, DType>, std::shared_ptr<const Gemm>> compiled;
  const std::lock_guard lock(mutex);
  // oneDNN cuts a product by the number of threads that it finds when the product is made: without this, how fast it is
  // and in which order it adds would depend on the cores of the machine.
  const SequentialLibrary sequential;
  std::shared_ptr<const Gemm>& entry = compiled[{shape, dtype}];
  if (entry == nullptr) {
    if (dtype == DType::f32) {
      try {
        entry = std::make_shared<DnnlGemm>(shape);
      } catch (const dnnl::error& problem) {
        if (problem.status == dnnl_out_of_memory) throw std::bad_alloc();
        fail("oneDNN refuses a matrix product of {} x {} x {}: {}", shape.m, shape.n, shape.k, problem.what());
      }
    } else {
      entry = std::make_shared<PlainGemm>(shape);
    }
  }
  return entry;
}

std::int64_t gemm_tile_grain(std::int64_t n, std::int64_t k, std::int64_t least) {
  constexpr std::int64_t kMultiplyAddsPerTile = 1 << 20;  // about 20 microseconds on one core
  return std::max(least, kMultiplyAddsPerTile / (n * k));
}

}  // namespace norma
