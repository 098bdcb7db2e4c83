// Families beside transformers on the GPU: loss and gradients of their schemes in every precision, training curves,
// resuming, and checkpoints that move between devices.
#include "cuda/agreement.h"
#include "models/model_check.h"
#include "norma/graph/differentiate.h"
#include "norma/models/stack.h"
#include "norma/store/safetensors_writer.h"
#include "temporary_folder.h"
#include "train/cohort_check.h"

namespace norma {
namespace {

using test::make_cohort;

struct FamilyCase {
  std::string family, scheme;
  NormKind norm = NormKind::layer;
  GraphConvolution convolution = GraphConvolution::gcn;
  Segmented readout = Segmented::mean;

  std::string words() const {
    return fmt::format("{} {} {} {} {}", family, scheme, norma::name_of(norm), static_cast<int>(convolution),
                       static_cast<int>(readout));
  }
};

ModelConfig tiny_family(const FamilyCase& one, DType dtype) {
  ModelConfig config = test::tiny(Family(one.family), one.scheme, dtype);
  config.norm = one.norm;
  config.convolution = one.convolution;
  config.readout = one.readout;
  if (one.family == "resnet") config.width = 16;
  return config;
}

std::vector<FamilyCase> family_schemes() {
  std::vector<FamilyCase> all;
  const auto add = [&](const std::string& family, const std::vector<Scheme>& schemes, NormKind norm) {
    for (const Scheme& scheme : schemes) all.push_back({family, scheme.name, norm});
  };
  add("resnet", catalogue("conv"), NormKind::batch);
  add("resnet", catalogue("conv"), NormKind::group);
  add("resnet", catalogue(), NormKind::layer);
  add("gcn", catalogue("gcn"), NormKind::layer);
  add("gcn", catalogue("gcn"), NormKind::batch);
  add("vit", catalogue(), NormKind::layer);
  add("mixer", catalogue(), NormKind::layer);
  add("mlp", catalogue(), NormKind::layer);
  add("dit", catalogue("condition"), NormKind::layer);
  add("dit", catalogue(), NormKind::layer);
  add("unet", catalogue("conv"), NormKind::group);
  add("unet", catalogue("conv"), NormKind::instance);
  add("unet", catalogue("condition"), NormKind::group);
  add("unet", catalogue(), NormKind::layer);
  add("graphs", catalogue("gcn"), NormKind::layer);
  for (const GraphConvolution kind : {GraphConvolution::sage, GraphConvolution::gin, GraphConvolution::gat}) {
    for (const Scheme& scheme : catalogue("gcn")) all.push_back({"gcn", scheme.name, NormKind::layer, kind});
  }
  for (const Segmented readout : {Segmented::sum, Segmented::max})
    all.push_back({"graphs", "res_plus", NormKind::layer, GraphConvolution::gin, readout});
  return all;
}

// The nearest number with so many bits behind the leading one.
double rounded(double value, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits + 1)), exponent - bits - 1);
}

// Loss and gradients, weights as they are drawn, or in f64 rounded to so many bits; inputs within what the family says.
test::Tensors family_gradients(const ModelConfig& config, const Backend& backend, bool fuse, Precision precision,
                               int bits = 0) {
  Graph graph;
  const Model model = build_model(graph, config);
  Wires parameters;
  for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
  const Wires gradients = differentiate(model.loss, parameters);
  graph.output("loss", model.loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) graph.output("d/" + model.parameters[i].name, gradients[i]);
  CompileOptions options{.narrow = precision == Precision::bf16};
  if (!fuse) options.rewrites.emplace();
  const auto session = make_session(compile(graph, backend, options),
                                    {.members = 2, .threads = 1, .tf32 = precision == Precision::tf32});
  for (int member = 0; member < 2; ++member) {
    test::stage_start(*session, member, 5, 9);
    for (const InputSpec& input : config.family->inputs(config)) {
      if (input.content == InputSpec::Content::numbers || !session->plan().has_slot(input.name)) continue;
      const Handle tensor = session->handle(input.name);
      // The number behind the last node would be no edge.
      const std::int64_t below = input.name == "edges" ? size_of(config, "nodes") : input.below;
      std::vector<double> ids = test::start_of(input.name, tensor.type(), 5, below);
      if (input.name == "graph_of") std::sort(ids.begin(), ids.end());
      session->write<std::int32_t>(tensor, std::vector<std::int32_t>(ids.begin(), ids.end()), member);
    }
    for (const std::string& name : session->plan().slot_names(Role::input)) {
      if (name.starts_with("schedule.")) session->stage_number(name, member, 0.3);
    }
    initialise(*session, model.parameters, static_cast<std::uint64_t>(member + 1), member);
    initialise(*session, model.kept, 1, member);
    for (const ParameterSpec& spec : model.parameters) {
      if (bits == 0) break;
      std::vector<double> values = session->read<double>(spec.name, member);
      for (double& value : values) value = rounded(value, bits);
      session->write<double>(spec.name, values, member);
    }
  }
  session->run();
  test::Tensors results = test::results_of(*session, 1);
  std::erase_if(results, [](const auto& entry) { return entry.first != "loss" && !entry.first.starts_with("d/"); });
  return results;
}

// Empty where the scheme cannot be built in this family.
test::Tensors truth_of(const FamilyCase& one, int bits = 0) {
  try {
    return family_gradients(tiny_family(one, DType::f64), cpu_backend(), true, Precision::f32, bits);
  } catch (const Error&) {
    return {};
  }
}

class CudaSchemes : public testing::TestWithParam<const char*> {};

TEST_P(CudaSchemes, HaveTheLossAndGradientsOfTheCpu) {
  SKIP_WITHOUT_GPU();
  int compared = 0;
  for (const FamilyCase& one : family_schemes()) {
    if (one.family != GetParam()) continue;
    const test::Tensors truth = truth_of(one);
    if (truth.empty()) continue;
    try {
      const ModelConfig config = tiny_family(one, DType::f32);
      const test::Tensors cpu = family_gradients(config, cpu_backend(), true, Precision::f32);
      for (const bool fuse : {true, false}) {
        const test::Tensors gpu = family_gradients(config, cuda_backend(), fuse, Precision::f32);
        EXPECT_EQ(test::disagreement(truth, cpu, gpu, {.factor = 16, .floor = 3e-5, .rest = 1e-6}), "")
            << one.words() << (fuse ? " fused" : "");
      }
      ++compared;
    } catch (const Error& error) {
      ADD_FAILURE() << one.words() << ": " << error.what();
    }
  }
  EXPECT_GE(compared, 6);
}

// How far all gradients together are from the truth, as a share of it.
double error_of(const test::Tensors& truth, const test::Tensors& found) {
  double wrong = 0, whole = 0;
  for (const auto& [name, values] : truth) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = found.at(name)[i] - values[i];
      wrong += difference * difference;
      whole += values[i] * values[i];
    }
  }
  return std::sqrt(wrong / whole);
}

// All gradients together: what is nearly 0 before a relu may round to its other side, and then some elements of a
// gradient are wholly wrong. A norm over four pixels makes more of it still, so that a network may ask for more digits
// than the precision has: how many is seen by rounding its weights alone, in f64.
TEST_P(CudaSchemes, InLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const FamilyCase& one : family_schemes()) {
    if (one.family != GetParam()) continue;
    const test::Tensors truth = truth_of(one);
    if (truth.empty()) continue;
    for (const auto& [precision, bits, most] : {std::tuple{Precision::tf32, 10, 0.08}, {Precision::bf16, 7, 0.25}}) {
      const double by_rounding = error_of(truth, truth_of(one, bits));
      for (const bool fuse : {true, false}) {
        const std::string what = one.words() + " " + std::string(name_of(precision)) + (fuse ? " fused" : "");
        try {
          const test::Tensors gpu = family_gradients(tiny_family(one, DType::f32), cuda_backend(), fuse, precision);
          EXPECT_LT(error_of(truth, gpu), std::max(most, 4 * by_rounding)) << what;
          EXPECT_NEAR(gpu.at("loss")[0], truth.at("loss")[0], 0.25 * most * (1 + truth.at("loss")[0])) << what;
        } catch (const Error& error) {
          ADD_FAILURE() << what << ": " << error.what();
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CudaSchemes,
                         testing::Values("resnet", "vit", "mixer", "mlp", "dit", "unet", "gcn", "graphs"),
                         [](const auto& one) { return std::string(one.param); });

RunConfig run_of(const std::string& family, const std::string& device, const std::string& changes = "") {
  std::string all = family == "gcn" ? "model.batch = 1\n" : "";  // before the family, which refuses any other
  all += "model.family = \"" + family + "\"\ntrain.device = \"" + device + "\"\ntrain.steps = 200\n";
  if (family == "resnet")
    all += "model.layers = 3\nmodel.scheme = \"resnet_v2\"\nmodel.norm = \"batch\"\nmodel.batch = 16\n";
  if (family == "vit") all += "model.batch = 16\n";
  if (family == "gcn" || family == "graphs") all += "model.scheme = \"res_plus\"\n";
  if (family == "graphs") all += "model.batch = 16\nmodel.convolution = \"gat\"\nmodel.readout = \"max\"\n";
  if (family == "dit") all += "model.scheme = \"adaln_zero\"\nmodel.batch = 64\n";
  if (family == "unet")
    all += "model.scheme = \"unet\"\nmodel.batch = 16\ndata.task = \"shapes\"\ndata.settings.size = 8\n";
  return test::small_run(all + changes);
}

// What the tests below train can be trained: seen without a card too.
TEST(CudaFamilies, RunsAreWhatTheCpuTrains) {
  for (const std::string family : {"resnet", "vit", "gcn", "mlp", "dit", "unet", "graphs"}) {
    Cohort cohort = make_cohort(run_of(family, "cpu"));
    cohort.train_step();
    EXPECT_TRUE(std::isfinite(cohort.member(0).loss)) << family;
  }
}

TEST(CudaFamilies, CurvesAreThoseOfTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const std::string family : {"resnet", "vit", "gcn", "mlp", "dit", "unet", "graphs"}) {
    try {
      Cohort cpu = make_cohort(run_of(family, "cpu")), gpu = make_cohort(run_of(family, "cuda")),
             mixed = make_cohort(run_of(family, "cuda", "train.precision = \"bf16\"\n"));
      double worst = 0, apart = 0, first = 0, last = 0;
      for (int step = 0; step < 200; ++step) {
        for (Cohort* const one : {&cpu, &gpu, &mixed}) one->train_step(Watching::no);
        if (step < 20) worst = std::max(worst, std::abs(cpu.member(0).loss - gpu.member(0).loss));
        if (step < 20) first += cpu.member(0).loss / 20;
        if (step >= 160) last += cpu.member(0).loss / 40;
        if (step >= 160) apart += (mixed.member(0).loss - cpu.member(0).loss) / 40;
      }
      EXPECT_LT(worst, 5e-3) << family;
      EXPECT_LT(last, first) << family;
      EXPECT_LT(std::abs(apart), 0.05 + 0.15 * (first - last)) << family;
    } catch (const Error& error) {
      ADD_FAILURE() << family << ": " << error.what();
    }
  }
}

std::vector<float> all_weights(Cohort& cohort, int member) {
  std::vector<float> all;
  for (const Role role : {Role::parameter, Role::state}) {
    for (const std::string& name : cohort.session().plan().slot_names(role)) {
      if (cohort.session().plan().slot(name).type.dtype != DType::f32) continue;
      const std::vector<float> values = cohort.session().read<float>(name, member);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

TEST(CudaFamilies, ResumeWithTheSameBits) {
  SKIP_WITHOUT_GPU();
  for (const std::string family : {"resnet", "vit", "gcn", "dit", "unet", "graphs"}) {
    for (const std::string precision : {"f32", "tf32", "bf16"}) {
      const test::TemporaryFolder folder;
      const RunConfig config =
          run_of(family, "cuda", "members.lr = [1e-3, 3e-3]\ntrain.precision = \"" + precision + "\"");
      Cohort whole = make_cohort(config), begun = make_cohort(config), resumed = make_cohort(config);
      for (int step = 0; step < 12; ++step) whole.train_step(step % 5 == 0 ? Watching::yes : Watching::no);
      for (int step = 0; step < 5; ++step) begun.train_step(Watching::no);
      const auto path = folder.path() / "checkpoint.safetensors";
      write_safetensors(path, begun.checkpoint_tensors(), begun.checkpoint_metadata());
      resumed.restore(SafetensorsFile(path));
      for (int step = 5; step < 12; ++step) resumed.train_step(Watching::no);
      for (int member = 0; member < 2; ++member) {
        EXPECT_EQ(all_weights(whole, member), all_weights(resumed, member)) << family << " " << precision;
        EXPECT_EQ(whole.member(member).loss, resumed.member(member).loss) << family << " " << precision;
      }
    }
  }
}

TEST(CudaFamilies, ACheckpointMovesBetweenDevices) {
  SKIP_WITHOUT_GPU();
  for (const std::string family : {"resnet", "vit", "gcn", "dit", "unet", "graphs"}) {
    const test::TemporaryFolder folder;
    Cohort cpu = make_cohort(run_of(family, "cpu")), gpu = make_cohort(run_of(family, "cuda"));
    for (int step = 0; step < 5; ++step) cpu.train_step();
    const auto path = folder.path() / "a.safetensors";
    write_safetensors(path, cpu.checkpoint_tensors(), cpu.checkpoint_metadata());
    gpu.restore(SafetensorsFile(path));
    EXPECT_EQ(all_weights(cpu, 0), all_weights(gpu, 0)) << family;
    for (int step = 0; step < 5; ++step) cpu.train_step(), gpu.train_step();
    EXPECT_NEAR(cpu.member(0).loss, gpu.member(0).loss, 2e-3) << family;
    cpu.evaluate();
    gpu.evaluate();
    EXPECT_NEAR(*gpu.member(0).evaluation_loss, *cpu.member(0).evaluation_loss, 2e-3) << family;
  }
}

// To rounding, as for every model: which algorithm a product takes may depend on the number of members. Training makes
// more of it with every step, most where a gradient of nearly 0 decides the direction of a whole step of Adam.
TEST(CudaFamilies, AMemberIsTheSameModelAlone) {
  SKIP_WITHOUT_GPU();
  for (const std::string family : {"resnet", "gcn"}) {
    Cohort both = make_cohort(run_of(family, "cuda", "members.lr = [1e-3, 1e-2, 3e-3]\nmembers.seed = [5, 6, 7]"));
    Cohort alone = make_cohort(run_of(family, "cuda", "train.lr = 1e-2\ntrain.seed = 6"));
    for (int step = 0; step < 20; ++step) {
      both.train_step();
      alone.train_step();
      ASSERT_NEAR(both.member(1).loss, alone.member(0).loss, step < 5 ? 1e-3 : 3e-2) << family << " " << step;
    }
  }
}

}  // namespace
}  // namespace norma
