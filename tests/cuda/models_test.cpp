// Whole models on the GPU against the CPU: loss and gradients of every scheme in every family, and training curves.
#include <atomic>
#include <filesystem>
#include <thread>

#include "cuda/agreement.h"
#include "models/model_check.h"
#include "norma/graph/differentiate.h"
#include "norma/models/model.h"
#include "norma/schemes/library.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/cohort.h"
#include "temporary_folder.h"
#include "train/cohort_check.h"

namespace norma {
namespace {

using test::make_cohort;
using test::small_run;

ModelConfig tiny_model(Family family, const std::string& scheme, DType dtype) {
  ModelConfig config = test::tiny(family, scheme, dtype);
  config.dropout = config.smoothing = true;
  return config;
}

// Loss and gradients, weights as they are drawn.
test::Tensors gradients_of(const ModelConfig& config, const Backend& backend, bool fuse,
                           Precision precision = Precision::f32) {
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
    for (const std::string& name : session->plan().slot_names(Role::input)) {
      if (name.starts_with("schedule.")) session->stage_number(name, member, 0.3);
      if (!name.ends_with("lengths")) continue;
      const Handle lengths = session->handle(name);
      std::vector<std::int32_t> values(lengths.elements());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 7 - static_cast<std::int32_t>(2 * i);
      session->write<std::int32_t>(lengths, values, member);
    }
    initialise(*session, model.parameters, static_cast<std::uint64_t>(member + 1), member);
  }
  session->run();
  test::Tensors results = test::results_of(*session, 1);
  std::erase_if(results, [](const auto& entry) { return entry.first != "loss" && !entry.first.starts_with("d/"); });
  return results;
}

TEST(CudaModels, EverySchemeHasTheLossAndGradientsOfTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const Family family : {Family("decoder"), Family("encoder"), Family("encoder_decoder")}) {
    for (const Scheme& scheme : catalogue()) {
      try {
        const test::Tensors truth = gradients_of(tiny_model(family, scheme.name, DType::f64), cpu_backend(), true);
        const ModelConfig config = tiny_model(family, scheme.name, DType::f32);
        const test::Tensors cpu = gradients_of(config, cpu_backend(), true);
        for (const bool fuse : {true, false}) {
          const test::Tensors gpu = gradients_of(config, cuda_backend(), fuse);
          EXPECT_EQ(test::disagreement(truth, cpu, gpu, {.factor = 16, .floor = 3e-5, .rest = 1e-7}), "")
              << scheme.name << " " << family->name << (fuse ? " fused" : "");
        }
      } catch (const Error& error) {
        ADD_FAILURE() << scheme.name << " " << family->name << ": " << error.what();
      }
    }
  }
}

// What a session takes to the card when it is made must be there before its first step reads it, however busy the card
// is.
TEST(CudaModels, AFirstRunIsRightWhileOthersWork) {
  SKIP_WITHOUT_GPU();
  const ModelConfig config = tiny_model(Family("decoder"), "pre", DType::f32);
  const test::Tensors alone = gradients_of(config, cuda_backend(), true);
  std::atomic<int> different = 0;
  std::vector<std::thread> others;
  for (int thread = 0; thread < 8; ++thread) {
    others.emplace_back([&] {
      for (int round = 0; round < 12; ++round) different += gradients_of(config, cuda_backend(), true) == alone ? 0 : 1;
    });
  }
  for (std::thread& one : others) one.join();
  EXPECT_EQ(different, 0);
}

// The length of what is wrong against that of the whole; `rest` is the length of all gradients together.
double relative_error(const std::vector<double>& truth, const std::vector<double>& found, double rest) {
  double wrong = 0, whole = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    wrong += (truth[i] - found[i]) * (truth[i] - found[i]);
    whole += truth[i] * truth[i];
  }
  return std::sqrt(wrong) / (std::sqrt(whole) + 0.01 * rest);
}

// Every tensor between two products is rounded to 11 or 8 bits; over the few dozen tensors of a two-layer model such
// errors add up like noise, to some times one rounding: sixteen are allowed. A term that is missing or counted twice is
// an error of the order of one.
TEST(CudaModels, EverySchemeInLowerPrecision) {
  SKIP_WITHOUT_GPU();
  for (const Family family : {Family("decoder"), Family("encoder"), Family("encoder_decoder")}) {
    for (const Scheme& scheme : catalogue()) {
      const test::Tensors truth = gradients_of(tiny_model(family, scheme.name, DType::f64), cpu_backend(), true);
      double rest = 0;
      for (const auto& [name, values] : truth) {
        for (const double value : values) rest += value * value;
      }
      for (const auto& [precision, most] : {std::pair{Precision::tf32, 16 * 0x1p-11}, {Precision::bf16, 16 * 0x1p-8}}) {
        for (const bool fuse : {true, false}) {
          const std::string what =
              fmt::format("{} {} {}{}", scheme.name, family->name, name_of(precision), fuse ? " fused" : "");
          try {
            const test::Tensors gpu =
                gradients_of(tiny_model(family, scheme.name, DType::f32), cuda_backend(), fuse, precision);
            for (const auto& [name, values] : truth) {
              const double error = relative_error(values, gpu.at(name), std::sqrt(rest));
              EXPECT_LT(error, most) << what << ": " << name;
            }
          } catch (const Error& error) {
            ADD_FAILURE() << what << ": " << error.what();
          }
        }
      }
    }
  }
}

RunConfig on(const std::string& device, const std::string& changes) {
  return small_run("train.device = \"" + device + "\"\ntrain.steps = 200\n" + changes);
}

TEST(CudaTraining, CurvesAreThoseOfTheCpu) {
  SKIP_WITHOUT_GPU();
  const std::vector<std::string> families = {"decoder", "encoder", "encoder_decoder"};
  for (const std::string& family : families) {
    for (const std::string scheme : {"pre", "post", "deepnorm", "rezero", "peri", "realformer"}) {
      const std::string changes = "model.family = \"" + family + "\"\nmodel.scheme = \"" + scheme + "\"";
      try {
        Cohort cpu = make_cohort(on("cpu", changes)), gpu = make_cohort(on("cuda", changes));
        double worst = 0;
        for (int step = 0; step < 200; ++step) {
          cpu.train_step(Watching::no);
          gpu.train_step(Watching::no);
          worst = std::max(worst, std::abs(cpu.member(0).loss - gpu.member(0).loss));
        }
        EXPECT_LT(worst, 5e-3) << changes;
      } catch (const Error& error) {
        ADD_FAILURE() << changes << ": " << error.what();
      }
    }
  }
}

// Rounding is noise that training forgives: the loss goes the same way.
class CudaMixedPrecision : public testing::TestWithParam<const char*> {};

TEST_P(CudaMixedPrecision, CurvesStayNear) {
  SKIP_WITHOUT_GPU();
  const std::string mixed = fmt::format("train.precision = \"bf16\"\nmodel.stream = \"{}\"", GetParam());
  for (const std::string family : {"decoder", "encoder", "encoder_decoder"}) {
    for (const std::string scheme : {"pre", "post", "deepnorm", "rezero", "peri", "realformer"}) {
      const std::string changes = "model.family = \"" + family + "\"\nmodel.scheme = \"" + scheme + "\"\n";
      try {
        Cohort cpu = make_cohort(on("cpu", changes)), gpu = make_cohort(on("cuda", changes + mixed));
        double apart = 0, first = 0, last = 0;
        for (int step = 0; step < 200; ++step) {
          cpu.train_step(Watching::no);
          gpu.train_step(Watching::no);
          (step < 20 ? first : last) += step < 20 || step >= 180 ? cpu.member(0).loss / 20 : 0;
          if (step >= 180) apart += (gpu.member(0).loss - cpu.member(0).loss) / 20;
        }
        EXPECT_LT(std::abs(apart), 0.02 + 0.05 * (first - last)) << changes;
      } catch (const Error& error) {
        ADD_FAILURE() << changes << ": " << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stream, CudaMixedPrecision, testing::Values("f32", "bf16"),
                         [](const auto& chosen) { return std::string(chosen.param); });

class CudaResume : public testing::TestWithParam<const char*> {};

TEST_P(CudaResume, HasTheSameBits) {
  SKIP_WITHOUT_GPU();
  const test::TemporaryFolder folder;
  const RunConfig config = on(
      "cuda", std::string("members.lr = [1e-3, 1e-2]\ntrain.dropout = 0.1\ntrain.precision = \"") + GetParam() + "\"");
  Cohort whole = make_cohort(config), first = make_cohort(config), second = make_cohort(config);
  for (int step = 0; step < 30; ++step) whole.train_step(step % 5 == 0 ? Watching::yes : Watching::no);
  for (int step = 0; step < 13; ++step) first.train_step(Watching::no);
  const auto path = folder.path() / "checkpoint.safetensors";
  write_safetensors(path, first.checkpoint_tensors(), first.checkpoint_metadata());
  second.restore(SafetensorsFile(path));
  for (int step = 13; step < 30; ++step) second.train_step(Watching::no);
  for (int member = 0; member < 2; ++member) {
    EXPECT_EQ(test::weights(whole, member), test::weights(second, member));
    EXPECT_EQ(whole.member(member).loss, second.member(member).loss);
  }
}

INSTANTIATE_TEST_SUITE_P(In, CudaResume, testing::Values("f32", "tf32", "bf16"),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST(CudaTraining, ACheckpointMovesBetweenDevices) {
  SKIP_WITHOUT_GPU();
  const test::TemporaryFolder folder;
  Cohort cpu = make_cohort(on("cpu", "")), gpu = make_cohort(on("cuda", "")), back = make_cohort(on("cpu", ""));
  for (int step = 0; step < 10; ++step) cpu.train_step();
  const auto path = folder.path() / "a.safetensors", second = folder.path() / "b.safetensors";
  write_safetensors(path, cpu.checkpoint_tensors(), cpu.checkpoint_metadata());
  gpu.restore(SafetensorsFile(path));
  EXPECT_EQ(test::weights(cpu), test::weights(gpu));
  for (int step = 0; step < 10; ++step) gpu.train_step();
  write_safetensors(second, gpu.checkpoint_tensors(), gpu.checkpoint_metadata());
  back.restore(SafetensorsFile(second));
  for (int step = 0; step < 10; ++step) cpu.train_step();
  EXPECT_NEAR(cpu.member(0).loss, gpu.member(0).loss, 1e-4);
  gpu.evaluate();
  back.evaluate();
  EXPECT_NEAR(*gpu.member(0).evaluation_loss, *back.member(0).evaluation_loss, 1e-4);
}

// The promise: to rounding, because the algorithm of a product may differ with the number of members.
TEST(CudaTraining, AMemberIsTheSameModelAlone) {
  SKIP_WITHOUT_GPU();
  Cohort both = make_cohort(on("cuda", "members.lr = [1e-3, 1e-2, 3e-3]\nmembers.seed = [5, 6, 7]"));
  Cohort alone = make_cohort(on("cuda", "train.lr = 1e-2\ntrain.seed = 6"));
  for (int step = 0; step < 50; ++step) {
    both.train_step();
    alone.train_step();
    ASSERT_NEAR(both.member(1).loss, alone.member(0).loss, 1e-3) << step;
  }
}

TEST(CudaTraining, DivergenceFreezesOneMember) {
  SKIP_WITHOUT_GPU();
  Cohort cohort = make_cohort(on("cuda", "members.seed = [1, 2]"));
  for (int step = 0; step < 5; ++step) cohort.train_step();
  test::poison(cohort, 1);
  std::vector<MemberEvent> events;
  for (int step = 0; step < 5; ++step) {
    for (const MemberEvent& event : cohort.train_step()) events.push_back(event);
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what, "diverged");
  EXPECT_EQ(events[0].member, 1);
  EXPECT_NE(events[0].why.find("layers.1.attn.out.bias"), std::string::npos) << events[0].why;
  EXPECT_TRUE(std::isfinite(cohort.member(0).loss));
}

// Losses of earlier steps are read from what those steps handed over, while later ones run.
TEST(CudaTraining, LookingLaterChangesNothing) {
  SKIP_WITHOUT_GPU();
  const RunConfig config = on("cuda", "members.seed = [1, 2]");
  Cohort soon = make_cohort(config), late = make_cohort(config, {.lag = 2});
  std::vector<double> losses;
  for (int step = 1; step <= 20; ++step) {
    soon.train_step(Watching::no);
    losses.push_back(soon.member(1).loss);
    late.train_step(Watching::no);
    if (step <= 2) continue;
    EXPECT_EQ(late.member(1).loss, losses[static_cast<std::size_t>(step - 3)]) << step;
  }
  late.look_back();
  EXPECT_EQ(late.observed_step(), 20);
  EXPECT_EQ(late.member(1).loss, losses.back());
  for (int member = 0; member < 2; ++member) EXPECT_EQ(test::weights(soon, member), test::weights(late, member));
  test::poison(late, 1);
  std::vector<MemberEvent> events;
  for (int step = 0; step < 5; ++step) {
    for (const MemberEvent& event : late.train_step(Watching::no)) events.push_back(event);
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step, 21);
  EXPECT_EQ(events[0].member, 1);
}

}  // namespace
}  // namespace norma
