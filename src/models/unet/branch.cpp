#include "models/unet/branch.h"

#include <cmath>

#include "models/options.h"
#include "models/resnet/weights.h"
#include "norma/core/error.h"
#include "norma/models/stack.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

Wire block_image(const BranchCall& call, Wire in, const UnetBlock& block) {
  const Shape& s = in.shape();
  if (s.rank() != 3 || s[1] != block.height * block.width || s[2] != block.in)
    fail("layer {} reads images {} x {} of {} channels, but was given {}", call.layer, block.height, block.width,
         block.in, s.str());
  return as_image(in, block.height, block.width);
}

// x and a product of the condition, one number for each channel of a sample.
Wire shifted(const BranchCall& call, Wire x) {
  const Wire condition = call.stack.condition;
  const auto scope = call.parameters.graph().scope("condition");
  const std::int64_t in = condition.shape().channels(), width = x.shape().channels();
  const InitRules& init = call.rules.init;
  const double xavier = std::sqrt(2.0 / static_cast<double>(in + width));
  ParameterSpec weight{
      .name = "weight",
      .init = Init::normal(init.deviation_of("condition").value_or(xavier) * init.gain_of("condition")),
      .role = "condition"};
  call.rules.optimiser.apply("condition", weight);
  ParameterSpec bias{.name = "bias", .init = Init::constant(0), .role = "bias"};
  call.rules.optimiser.apply("bias", bias);
  const Wire shift =
      linear(condition, call.parameters.share({in, width}, weight), call.parameters.share({width}, bias));
  return x + reshape(shift, {shift.shape()[0], 1, width});
}

// A norm of each channel of a sample by itself removes what was added to it.
void check_keeps_condition(const BranchCall& call, const std::string& inner, std::int64_t channels) {
  const NormInfo& info = norm_called(inner, call.stack.norm);
  const bool alone = info.kind == NormKind::group && (call.stack.norm_groups == channels || channels == 1);
  if (info.kind != NormKind::instance && !alone) return;
  throw NotBuiltError(
      fmt::format("{} of single channels behind the first convolution of a U-Net's block removes what the condition "
                  "adds to each of its {} channels, so that the model would not know the timestep; expected groups of "
                  "several channels, or another norm",
                  info.title, channels));
}

Wire build_block(const BranchCall& call, const UnetBlock& block, Told told) {
  if (call.style.unit) throw NotBuiltError("convolutions have no weights of unit length");
  if (!call.options.text("form").empty())
    throw NotBuiltError("blocks of a U-Net are two convolutions of 3 x 3; the scheme asks for blocks of another form");
  const std::string inner = call.options.text("inner"), given = call.options.text("activation");
  const Activation activation = given.empty() ? call.stack.activation : parse_activation(given);
  const Wire first =
      convolve(call.parameters, block_image(call, call.in, block),
               {.scope = "in", .role = "conv", .out = block.out, .bias = call.style.biases, .form = call.style.form},
               call.rules);
  Wire x = as_stream(first);
  const bool told_here = told == Told::by_block && call.stack.condition;
  if (told_here && !inner.empty()) check_keeps_condition(call, inner, block.out);
  if (told_here) x = shifted(call, x);
  if (!inner.empty()) x = call.norm(inner, "inner_norm", x);
  x = as_image(activate(x, activation), block.height, block.width);
  // A rule for the deviation of output projections holds for the last weight of any branch.
  const char* last = call.rules.init.deviation.contains("out") ? "out" : "conv_out";
  return as_stream(
      convolve(call.parameters, x,
               {.scope = "out", .role = last, .out = block.out, .bias = call.style.biases, .form = call.style.form},
               call.rules));
}

Wire build_block_skip(const BranchCall& call, const UnetBlock& block) {
  if (block.in == block.out) return call.in;
  const Wire from = call.options.text("skip_reads") == "branch" && call.read ? call.read : call.in;
  const std::string kind = call.options.text("skip");
  const Wire projected = as_stream(convolve(call.parameters, block_image(call, from, block),
                                            {.scope = "skip",
                                             .role = "conv_skip",
                                             .kernel = 1,
                                             .out = block.out,
                                             .bias = call.style.biases && kind.empty(),
                                             .start = ConvolutionWeight::Start::keeps_size},
                                            call.rules));
  return kind.empty() ? projected : call.norm(kind, "skip_norm", projected);
}

}  // namespace

LayerBranch unet_layer_branch(const std::vector<UnetBlock>& blocks, Told told) {
  const auto block_of = [blocks](const BranchCall& call) { return blocks.at(static_cast<std::size_t>(call.layer)); };
  return {.kind = &branch_kind("conv"),
          .build = [=](const BranchCall& call) { return build_block(call, block_of(call), told); },
          .skip = [=](const BranchCall& call) { return build_block_skip(call, block_of(call)); }};
}

}  // namespace norma
