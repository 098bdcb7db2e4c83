#include "bench/cuda/image_case.h"

#include <array>
#include <cmath>
#include <utility>

#include "norma/norms/channel.h"
#include "norma/ops/convolution.h"
#include "ops/cuda/convolution_plan.h"

namespace norma {

cuda::Program cuda_kernel(const ChannelNorm& op, Types in, Types out);
cuda::Program cuda_kernel(const ChannelNormBackward& op, Types in, Types out);

namespace bench {
namespace {

ConvolutionOptions options_of(const ConvolutionSetup& s) { return {.stride = s.stride, .padding = s.kernel / 2}; }

struct ConvolutionTypes {
  Type image, weights, answer;

  explicit ConvolutionTypes(const ConvolutionSetup& s)
      : image{{s.batch, s.side, s.across(), s.in}, DType::bf16},
        weights{{s.kernel, s.kernel, s.in, s.out}, DType::bf16},
        answer{{s.batch, small(s, s.side), small(s, s.across()), s.out}, DType::bf16} {}
  static std::int64_t small(const ConvolutionSetup& s, std::int64_t side) {
    return (side + 2 * (s.kernel / 2) - s.kernel) / s.stride + 1;
  }
};

const char* name_of(ImagePass pass) {
  return pass == ImagePass::forward ? "forward" : pass == ImagePass::image ? "by image" : "by weights";
}

// What each product adds, wherever it goes: each(place in the image, in the weights, in the answer).
template <typename Each>
void every_product(const ConvolutionSetup& s, const Each& each) {
  const std::int64_t down = ConvolutionTypes::small(s, s.side), small = ConvolutionTypes::small(s, s.across());
  const std::int64_t padding = s.kernel / 2, wide = s.across();
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t pixel = 0; pixel < down * small; ++pixel) {
      for (std::int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
        const std::int64_t y = pixel / small * s.stride + tap / s.kernel - padding;
        const std::int64_t x = pixel % small * s.stride + tap % s.kernel - padding;
        if (y < 0 || x < 0 || y >= s.side || x >= wide) continue;
        for (std::int64_t i = 0; i < s.in; ++i) {
          for (std::int64_t o = 0; o < s.out; ++o)
            each(static_cast<std::size_t>(((b * s.side + y) * wide + x) * s.in + i),
                 static_cast<std::size_t>((tap * s.in + i) * s.out + o),
                 static_cast<std::size_t>((b * down * small + pixel) * s.out + o));
        }
      }
    }
  }
}

std::vector<double> convolved(const ConvolutionSetup& s, const std::vector<double>& a, const std::vector<double>& b,
                              std::size_t size) {
  std::vector<double> out(size, 0.0);
  every_product(s, [&](std::size_t image, std::size_t weight, std::size_t answer) {
    if (s.pass == ImagePass::forward) out[answer] += a[image] * b[weight];
    if (s.pass == ImagePass::image) out[image] += a[answer] * b[weight];
    if (s.pass == ImagePass::weights) out[weight] += a[image] * b[answer];
  });
  return out;
}

TensorType width_of(const Type& type) { return type.dtype == DType::bf16 ? TensorType::bf16 : TensorType::f32; }

// Inputs and outputs of a program, and its launch over them.
void add_program(KernelCase& made, const cuda::Program& program, const std::vector<std::pair<std::string, Type>>& in,
                 const std::vector<std::pair<std::string, Type>>& out) {
  std::vector<std::int64_t> offsets;
  for (const auto& [name, type] : in)
    offsets.push_back(made.add(name, TensorUse::input, width_of(type), type.shape.elements()));
  for (const auto& [name, type] : out)
    offsets.push_back(made.add(name, TensorUse::output, width_of(type), type.shape.elements()));
  const std::int64_t scratch =
      made.add("scratch", TensorUse::scratch, TensorType::f32, (program.scratch_bytes + 3) / 4);
  made.launch = [=, inputs = static_cast<int>(in.size())](const cuda::Members& members, cuda::Stream stream) {
    return program.launch(
        {.members = members, .offsets = offsets.data(), .inputs = inputs, .scratch = scratch, .stream = stream});
  };
}

// The plan of a setup, and types of what it reads and writes.
struct Planned {
  Type a, b, out;
  ConvolutionPlan plan;
  bool differs = false;  // from the way that is chosen, or it is that

  explicit Planned(const ConvolutionSetup& s) {
    const ConvolutionTypes types(s);
    out = s.pass == ImagePass::forward ? types.answer : s.pass == ImagePass::image ? types.image : types.weights;
    if (s.pass == ImagePass::weights) out.dtype = DType::f32;
    a = s.pass == ImagePass::image ? types.answer : types.image;
    b = s.pass == ImagePass::weights ? types.answer : types.weights;
    const std::array<Type, 2> in = {a, b};
    const std::array<Type, 1> outs = {out};
    const ConvolutionPass pass = s.pass == ImagePass::forward ? ConvolutionPass::forward
                                 : s.pass == ImagePass::image ? ConvolutionPass::data
                                                              : ConvolutionPass::weights;
    plan = plan_convolution(pass, ConvolutionSizes(options_of(s), types.image.shape, types.weights.shape), in, outs);
    differs = s.way == ImageWay::chosen || (plan.im2col && take_way(pass, s.way));
  }

 private:
  // Whether there is such a way, and it is not the one that was chosen.
  bool take_way(ConvolutionPass pass, ImageWay way) {
    const cuda::Im2colCall chosen = plan.im2col_call;
    if (way == ImageWay::older) plan.im2col = false;
    if (way == ImageWay::by_taps) plan.im2col = cuda::plan_im2col(pass, plan.im2col_call, cuda::Im2colBox::tap);
    if (way == ImageWay::square) plan.im2col = cuda::plan_im2col(pass, plan.im2col_call, cuda::Im2colTile::square);
    if (way == ImageWay::tall) plan.im2col = cuda::plan_im2col(pass, plan.im2col_call, cuda::Im2colTile::tall);
    if (way == ImageWay::wide) plan.im2col = cuda::plan_im2col(pass, plan.im2col_call, cuda::Im2colTile::wide);
    return way == ImageWay::older ||
           (plan.im2col && (chosen.tile != plan.im2col_call.tile || chosen.box != plan.im2col_call.box));
  }
};

const char* name_of(ImageWay way) {
  switch (way) {
    case ImageWay::chosen: return "";
    case ImageWay::by_taps: return ", by taps";
    case ImageWay::square: return ", square";
    case ImageWay::tall: return ", tall";
    case ImageWay::wide: return ", wide";
    case ImageWay::older: return ", older";
  }
  return "";
}

}  // namespace

std::vector<ImageWay> ways_of(ConvolutionSetup setup) {
  std::vector<ImageWay> ways;
  using enum ImageWay;
  for (const ImageWay way : {chosen, by_taps, square, tall, wide, older}) {
    setup.way = way;
    if (Planned(setup).differs) ways.push_back(way);
  }
  return ways;
}

KernelCase convolution_case(const ConvolutionSetup& s) {
  const Planned planned(s);
  KernelCase made{.name = "convolution " + std::string(name_of(s.pass)) + " B=" + std::to_string(s.batch) + " " +
                          std::to_string(s.side) + "x" + std::to_string(s.across()) + " " + std::to_string(s.in) +
                          " to " + std::to_string(s.out) + " kernel " + std::to_string(s.kernel) + " stride " +
                          std::to_string(s.stride) + name_of(s.way)};
  made.flops = 2.0 * static_cast<double>(ConvolutionTypes(s).answer.shape.elements() * s.in * s.kernel * s.kernel);
  add_program(made, convolution_program(planned.plan), {{"a", planned.a}, {"b", planned.b}}, {{"out", planned.out}});
  made.fill = [at = made](std::byte* member, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    for (const char* name : {"a", "b"}) {
      const CaseTensor& tensor = at.find(name);
      for (std::int64_t i = 0; i < tensor.size; ++i) write_element(member, tensor, i, normal(random));
    }
  };
  made.expect = [s, at = made](const std::byte* member) {
    const CaseTensor& tensor = at.find("out");
    const std::vector<double> wanted = convolved(
        s, read_tensor(member, at.find("a")), read_tensor(member, at.find("b")), static_cast<std::size_t>(tensor.size));
    return std::map<std::string, Wanted>{{"out", {wanted, tensor.type == TensorType::bf16 ? 0x1p-8 : 0x1p-16}}};
  };
  return made;
}

KernelCase batch_norm_case(std::int64_t rows, std::int64_t channels, bool backward) {
  KernelCase made{.name = std::string("BatchNorm with relu ") + (backward ? "backward " : "") + std::to_string(rows) +
                          " x " + std::to_string(channels)};
  const ChannelNormOptions options{.name = "batch_norm", .region = Region::batch, .relu = true};
  const Type x{{1, rows, channels}, DType::bf16}, line{{channels}, DType::f32}, one{{1}, DType::f32};
  std::vector<std::pair<std::string, Type>> in, out;
  if (backward) {
    in = {{"x", x}, {"dy", x}, {"eps", one}, {"rstd", line}, {"mean", line}, {"gain", line}, {"bias", line}};
    out = {{"dx", x}, {"dgain", line}, {"dbias", line}};
  } else {
    in = {{"x", x}, {"eps", one}, {"gain", line}, {"bias", line}};
    out = {{"y", x}, {"rstd", line}, {"mean", line}, {"variance", line}};
  }
  const auto types = [](const auto& named) {
    std::vector<Type> all;
    for (const auto& [name, type] : named) all.push_back(type);
    return all;
  };
  const std::vector<Type> ins = types(in), outs = types(out);
  add_program(
      made,
      backward ? cuda_kernel(ChannelNormBackward(options), ins, outs) : cuda_kernel(ChannelNorm(options), ins, outs),
      in, out);
  made.flops = 6.0 * static_cast<double>(rows * channels);
  return made;
}

}  // namespace bench
}  // namespace norma
