#include "bench/cuda/image_case.h"

#include <array>
#include <cmath>
#include <utility>

#include "norma/norms/channel.h"
#include "norma/ops/convolution.h"

namespace norma {

cuda::Program cuda_kernel(const Conv2d& op, Types in, Types out);
cuda::Program cuda_kernel(const Conv2dData& op, Types in, Types out);
cuda::Program cuda_kernel(const Conv2dWeights& op, Types in, Types out);
cuda::Program cuda_kernel(const ChannelNorm& op, Types in, Types out);
cuda::Program cuda_kernel(const ChannelNormBackward& op, Types in, Types out);

namespace bench {
namespace {

ConvolutionOptions options_of(const ConvolutionSetup& s) { return {.stride = s.stride, .padding = s.kernel / 2}; }

struct ConvolutionTypes {
  Type image, weights, answer;

  explicit ConvolutionTypes(const ConvolutionSetup& s)
      : image{{s.batch, s.side, s.side, s.in}, DType::bf16},
        weights{{s.kernel, s.kernel, s.in, s.out}, DType::bf16},
        answer{{s.batch, small(s), small(s), s.out}, DType::bf16} {}
  static std::int64_t small(const ConvolutionSetup& s) {
    return (s.side + 2 * (s.kernel / 2) - s.kernel) / s.stride + 1;
  }
};

const char* name_of(ImagePass pass) {
  return pass == ImagePass::forward ? "forward" : pass == ImagePass::image ? "by image" : "by weights";
}

// What each product adds, wherever it goes: each(place in the image, in the weights, in the answer).
template <typename Each>
void every_product(const ConvolutionSetup& s, const Each& each) {
  const std::int64_t small = ConvolutionTypes::small(s), padding = s.kernel / 2;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t pixel = 0; pixel < small * small; ++pixel) {
      for (std::int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
        const std::int64_t y = pixel / small * s.stride + tap / s.kernel - padding;
        const std::int64_t x = pixel % small * s.stride + tap % s.kernel - padding;
        if (y < 0 || x < 0 || y >= s.side || x >= s.side) continue;
        for (std::int64_t i = 0; i < s.in; ++i) {
          for (std::int64_t o = 0; o < s.out; ++o)
            each(static_cast<std::size_t>(((b * s.side + y) * s.side + x) * s.in + i),
                 static_cast<std::size_t>((tap * s.in + i) * s.out + o),
                 static_cast<std::size_t>((b * small * small + pixel) * s.out + o));
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

}  // namespace

KernelCase convolution_case(const ConvolutionSetup& s) {
  const ConvolutionTypes types(s);
  const ConvolutionOptions options = options_of(s);
  KernelCase made{.name = "convolution " + std::string(name_of(s.pass)) + " B=" + std::to_string(s.batch) + " " +
                          std::to_string(s.side) + "x" + std::to_string(s.side) + " " + std::to_string(s.in) + " to " +
                          std::to_string(s.out) + " kernel " + std::to_string(s.kernel) + " stride " +
                          std::to_string(s.stride)};
  made.flops = 2.0 * static_cast<double>(types.answer.shape.elements() * s.in * s.kernel * s.kernel);
  Type out = s.pass == ImagePass::forward ? types.answer : s.pass == ImagePass::image ? types.image : types.weights;
  if (s.pass == ImagePass::weights) out.dtype = DType::f32;
  const Type a = s.pass == ImagePass::image ? types.answer : types.image;
  const Type b = s.pass == ImagePass::weights ? types.answer : types.weights;
  const std::array<Type, 2> in = {a, b};
  const std::array<Type, 1> outs = {out};
  const cuda::Program program = s.pass == ImagePass::forward ? cuda_kernel(Conv2d(options), in, outs)
                                : s.pass == ImagePass::image
                                    ? cuda_kernel(Conv2dData(options, types.image.shape), in, outs)
                                    : cuda_kernel(Conv2dWeights(options, types.weights.shape), in, outs);
  add_program(made, program, {{"a", a}, {"b", b}}, {{"out", out}});
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
