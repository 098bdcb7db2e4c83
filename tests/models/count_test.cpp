// Parameters of every scheme against counts written out from the papers, not from the code that builds them.
#include <map>

#include "models/model_check.h"
#include "norma/models/budget.h"

namespace norma::count {
namespace {

constexpr std::int64_t d = 24, h = 96, heads = 3, head = d / heads, ln = 2 * d, rms = d, copies = 4;

// What one stack has beside the weights of its branches.
struct Extra {
  std::int64_t attention = 0, cross = 0, feed_forward = 0;  // of one sublayer
  std::int64_t layer = 0, final = 0, first_layer = 0;       // of one layer, of the stack, of the first layer only
  bool biases = true;
};

Extra every(std::int64_t sublayer, std::int64_t final) {
  return {.attention = sublayer, .cross = sublayer, .feed_forward = sublayer, .final = final};
}

std::map<std::string, Extra> expected() {
  const std::int64_t qkv_norms = 3 * 2 * head;
  const std::int64_t hc = copies + copies * copies + copies;
  std::map<std::string, Extra> all = {
      {"post", every(ln, 0)},
      {"pre", every(ln, ln)},
      {"pre_gpt2", every(ln, ln)},
      {"parallel", {.layer = ln, .final = ln}},
      {"admin", every(ln + d, 0)},
      {"admin_torch", every(ln + d, 0)},
      {"admin_torch_constant", every(ln + d, 0)},
      {"admin_torch_linear", every(ln + d, 0)},
      {"rezero", {.layer = 1}},
      {"skipinit", every(1, 0)},
      {"tfixup", every(0, 0)},
      {"layerscale", every(ln + d, ln)},
      {"deepnorm", every(ln, 0)},
      {"realformer", every(ln, 0)},
      {"peri", every(2 * ln, ln)},
      {"gemma2", every(2 * rms, rms)},
      {"olmo2", {.attention = rms + 2 * d, .cross = rms + 2 * d, .feed_forward = rms, .final = rms}},
      {"normformer", {.attention = 2 * ln + heads, .cross = 2 * ln, .feed_forward = ln + 2 * h, .final = ln}},
      {"subln", {.attention = 2 * ln, .cross = ln, .feed_forward = ln + 2 * h, .final = ln}},
      {"b2t", every(ln, 0)},
      {"residual", every(ln, ln)},
      {"mix", every(ln, ln)},
      {"lns", every(ln, ln)},
      {"hybridnorm", {.attention = qkv_norms, .cross = qkv_norms, .feed_forward = ln, .final = ln}},
      {"hybridnorm_star",
       {.attention = qkv_norms, .cross = qkv_norms, .feed_forward = ln, .final = ln, .first_layer = ln}},
      {"dyt", every(2 * d + 1, 2 * d + 1 + 1)},
      {"qk", {.attention = ln + 2 * 2 * head, .cross = ln + 2 * 2 * head, .feed_forward = ln, .final = ln}},
      {"depth_mup", every(ln, ln)},
      {"completep", every(ln, ln)},
      {"ngpt", {.attention = d + d, .cross = d + d, .feed_forward = d + h, .biases = false}},
      {"hc_static", every(ln + hc, ln)},
      {"hc_dynamic", every(2 * ln + hc + 2 * d + d * copies + 2, ln)},
      {"mhc", every(ln + copies * d * (2 * copies + copies * copies) + 2 * copies + copies * copies + 3, ln)},
      {"keel", every(2 * rms, 0)},  // the first attention sublayer has no outer norm: below
      {"siamese", every(3 * ln, 3 * ln)},
      {"gpas", every(ln + 1, ln)},
      {"attnres", every(ln + d, ln + d)},
      {"attnres_block", every(ln + d, ln + d)},
      {"pre_to_post", every(2 * ln, ln)},
      {"post_pre_post", every(2 * ln, ln)},
  };
  all.at("keel").first_layer = -rms;
  return all;
}

std::int64_t stack(const Extra& extra, std::int64_t layers, bool cross) {
  const std::int64_t attention = 4 * d * d + (extra.biases ? 4 * d : 0);
  const std::int64_t feed_forward = 2 * d * h + (extra.biases ? d + h : 0);
  std::int64_t layer = attention + feed_forward + extra.attention + extra.feed_forward + extra.layer;
  if (cross) layer += attention + extra.cross;
  return layers * layer + extra.final + extra.first_layer + (cross && extra.first_layer > 0 ? extra.first_layer : 0);
}

TEST(Count, OfEverySchemeInEveryFamily) {
  const std::map<std::string, Extra> all = expected();
  for (const std::string& scheme : test::catalogue_names()) {
    SCOPED_TRACE(scheme);
    ASSERT_TRUE(all.contains(scheme)) << "write its count down here";
    const Extra& extra = all.at(scheme);
    const std::int64_t gain = scheme == "ngpt" ? 17 : 0;  // of the head
    const std::int64_t outside = (17 + 9 + 17) * d + gain;
    EXPECT_EQ(model_budget(test::tiny("decoder", scheme)).parameters, stack(extra, 3, false) + outside);
    EXPECT_EQ(model_budget(test::tiny("encoder", scheme)).parameters, stack(extra, 3, false) + outside);
    const Budget both = model_budget(test::tiny("encoder_decoder", scheme));
    EXPECT_EQ(both.stack_parameters, stack(extra, 3, false) + stack(extra, 2, true));
    EXPECT_EQ(both.parameters, both.stack_parameters + outside + (13 + 7) * d);
  }
}

TEST(Count, ByRoleAddsUp) {
  for (const Family family : {"decoder", "encoder", "encoder_decoder"}) {
    const Budget budget = model_budget(test::tiny(family, "normformer"));
    std::int64_t sum = 0;
    for (const auto& [role, count] : budget.by_role) sum += count;
    EXPECT_EQ(sum, budget.parameters);
    EXPECT_EQ(budget.by_role.at("head"), 17 * d);
    EXPECT_EQ(budget.by_role.at("ffn"), (family == "encoder_decoder" ? 5 : 3) * 2 * d * h);
    EXPECT_EQ(budget.by_role.at("norm"), budget.norm_parameters);
    EXPECT_FALSE(budget.by_role.contains("")) << "every parameter has a role";
  }
}

TEST(Count, OfVariants) {
  ModelConfig config = test::tiny("decoder", "pre");
  const std::int64_t plain = model_budget(config).parameters;
  config.gated = true;
  EXPECT_EQ(model_budget(config).parameters, plain + 3 * (d * h + h));
  config = test::tiny("decoder", "pre");
  config.tied = true;
  EXPECT_EQ(model_budget(config).parameters, plain - 17 * d);
  config = test::tiny("decoder", "pre");
  config.kv_heads = 1;
  EXPECT_EQ(model_budget(config).parameters, plain - 3 * 2 * 2 * head * (d + 1));
  config = test::tiny("decoder", "pre");
  config.positions = Positions::sinusoidal;
  EXPECT_EQ(model_budget(config).parameters, plain - 9 * d);
  config = test::tiny("decoder", "pre");
  config.qk_norm = "rmsnorm";
  EXPECT_EQ(model_budget(config).parameters, plain + 3 * 2 * head);
}

}  // namespace
}  // namespace norma::count
