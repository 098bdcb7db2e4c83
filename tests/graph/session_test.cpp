// Replaying a plan: the same bits for any number of threads and members, and the first wire that is not finite.
#include "device/cpu/cpu_session.h"

#include <algorithm>
#include <limits>

#include "check.h"
#include "graph/test_ops.h"
#include "norma/backends/device.h"

namespace norma {
namespace {

// Elementwise ops, broadcasts and all kinds of sums, forward and backward, over several tiles; and an update.
void build_step(Graph& g) {
  const Wire x = g.input("x", {{300, 257}, DType::f32}), w = g.parameter("w", {{257}, DType::f32});
  const Wire h = tanh(x * w) + exp(x * 0.1);
  const Wire centred = h - mean_last(h);
  const Wire loss = mean_all(square(centred * rsqrt(mean_last(square(centred)) + 1e-5)) * sigmoid(w));
  g.output("loss", loss);
  g.output("h", centred);
  const Wire wrt[] = {w, x};
  const Wires gradients = differentiate(loss, wrt);
  g.output("dx", gradients[1]);
  test::accumulate(w, gradients[0] * -0.5);
}

std::shared_ptr<const Plan> step_plan() {
  Graph g;
  build_step(g);
  return test::test_plan(g);
}

void fill(CpuSession& session, int member, std::uint64_t seed) {
  for (const char* name : {"x", "w"}) {
    const RandomStream stream(seed, name);
    std::span<float> tensor = session.tensor<float>(name, member);
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(stream.normal(i));
  }
}

std::vector<float> read(CpuSession& session, int member) {
  std::vector<float> all;
  for (const char* name : {"loss", "h", "dx", "w"}) {
    const std::span<float> tensor = session.tensor<float>(name, member);
    all.insert(all.end(), tensor.begin(), tensor.end());
  }
  return all;
}

std::vector<float> run_alone(const std::shared_ptr<const Plan>& plan, std::uint64_t seed, int threads) {
  CpuSession session(plan, {.members = 1, .threads = threads});
  fill(session, 0, seed);
  session.run();
  session.run();
  return read(session, 0);
}

TEST(Session, SameBitsForAnyNumberOfThreads) {
  const auto plan = step_plan();
  const std::vector<float> expected = run_alone(plan, 1, 1);
  for (const int threads : {2, 3, 5, 0}) EXPECT_EQ(run_alone(plan, 1, threads), expected) << threads << " threads";
}

TEST(Session, ARunThatDoesNotWatchLeavesOutWhatIsOnlyWatched) {
  Graph g;
  build_step(g);
  g.watch("watched", mean_last(square(g.find("x"))));
  const auto plan = test::test_plan(g), plain = step_plan();
  const auto left_out =
      std::count_if(plan->steps().begin(), plan->steps().end(), [](const Step& step) { return step.only_watched; });
  EXPECT_GT(left_out, 0);
  EXPECT_EQ(plan->steps().size() - static_cast<std::size_t>(left_out), plain->steps().size());
  const std::vector<float> expected = run_alone(plain, 1, 1);
  for (const int threads : {1, 2, 3}) {
    CpuSession session(plan, {.members = 1, .threads = threads});
    fill(session, 0, 1);
    session.run(Watching::no);
    session.run();
    EXPECT_EQ(read(session, 0), expected) << threads << " threads";
    double squares = 0;
    for (const float value : session.tensor<float>("x").first(257)) squares += static_cast<double>(value) * value;
    EXPECT_NEAR(session.tensor<float>("watched")[0], squares / 257, 1e-5);
  }
}

TEST(Session, AMemberOfACohortHasTheBitsOfTheMemberAlone) {
  const auto plan = step_plan();
  std::vector<std::vector<float>> alone;
  for (std::uint64_t member = 0; member < 9; ++member) alone.push_back(run_alone(plan, member, 1));
  for (int threads = 1; threads <= 8; ++threads) {
    for (int members = 1; members <= 9; ++members) {
      CpuSession session(plan, {.members = members, .threads = threads});
      for (int member = 0; member < members; ++member) fill(session, member, static_cast<std::uint64_t>(member));
      session.run();
      session.run();
      for (int member = 0; member < members; ++member) {
        EXPECT_EQ(read(session, member), alone[static_cast<std::size_t>(member)])
            << "member " << member << " of " << members << " on " << threads << " threads";
      }
    }
  }
}

TEST(Session, ADivergedMemberLeavesTheOthersAlone) {
  const auto plan = step_plan();
  CpuSession session(plan, {.members = 3, .threads = 2});
  for (int member = 0; member < 3; ++member) fill(session, member, 5);
  session.tensor<float>("x", 1)[7] = std::numeric_limits<float>::quiet_NaN();
  session.run();
  session.run();
  EXPECT_EQ(read(session, 0), run_alone(plan, 5, 1));
  EXPECT_EQ(read(session, 2), run_alone(plan, 5, 1));
  EXPECT_TRUE(std::isnan(session.tensor<float>("loss", 1)[0]));
}

TEST(Session, CheckedRunNamesTheFirstWireThatIsNotFinite) {
  Graph g;
  const Wire x = g.input("x", {{4}, DType::f32});
  Wire y;
  {
    const auto scope = g.scope("layers.3");
    y = log(x);
  }
  const Wire z = exp(y) + 1.0;
  g.output("z", z);
  CpuSession session(test::test_plan(g), {.members = 2, .threads = 2});
  session.write_all<float>("x", std::vector<float>{1, 2, 3, 4});
  EXPECT_FALSE(session.run_checked().has_value());
  session.tensor<float>("x", 1)[2] = 0;
  const auto found = session.run_checked();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->wire, y.name());
  EXPECT_TRUE(found->wire.starts_with("layers.3.log#")) << found->wire;
  EXPECT_EQ(found->member, 1);
  EXPECT_EQ(found->index, 2);
  EXPECT_EQ(found->value, -std::numeric_limits<double>::infinity());
}

TEST(Session, CheckedRunPassesOverWhatIsOnlyWatched) {
  Graph g;
  const Wire x = g.input("x", {{4}, DType::f32});
  g.watch("watched", log(x));
  const Wire bad = log(x * 2.0);
  g.output("z", bad);
  CpuSession session(test::test_plan(g));
  session.write<float>("x", std::vector<float>{1, 0, 3, 4});
  const auto found = session.run_checked();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->wire, bad.name());
}

TEST(Session, CheckedRunHasTheBitsOfTheRun) {
  const auto plan = step_plan();
  CpuSession session(plan, {.members = 2, .threads = 2});
  fill(session, 0, 1);
  fill(session, 1, 2);
  EXPECT_FALSE(session.run_checked().has_value());
  EXPECT_FALSE(session.run_checked().has_value());
  EXPECT_EQ(read(session, 0), run_alone(plan, 1, 1));
  EXPECT_EQ(read(session, 1), run_alone(plan, 2, 1));
}

TEST(Session, ConstantsReachEveryMember) {
  Graph g;
  const std::vector<float> values = {1, 2, 3};
  const Wire c = g.constant<float>("c", {3}, values), x = g.input("x", {{3}, DType::f32});
  g.output("y", x + c);
  CpuSession session(test::test_plan(g), {.members = 3});
  session.run();
  for (int member = 0; member < 3; ++member) {
    EXPECT_TRUE(std::equal(values.begin(), values.end(), session.tensor<float>("y", member).begin()));
  }
}

TEST(Session, WhatIsStagedIsReadBack) {
  Graph g;
  const Wire x = g.input("x", {{3}, DType::f32}), y = g.input("y", {{2}, DType::f64});
  g.output("doubled", x * 2.0);
  g.output("ids", g.input("n", {{2}, DType::i32}));
  g.output("sum", y + 1.0);
  const auto session = make_session(test::test_plan(g), {.members = 2, .threads = 2});
  const Handle in = session->handle("x"), out = session->handle("doubled");
  session->write<float>(in, std::vector<float>{1, 2, 3}, 1);
  session->stage_number("y", 1, 0.5);
  session->write<std::int32_t>("n", std::vector<std::int32_t>{7, -8}, 1);
  session->run();
  EXPECT_EQ(session->read<float>(out, 1), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(session->read<float>(out, 0), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(session->number(out, 1, 2), 6);
  EXPECT_EQ(session->number("ids", 1, 1), -8);
  EXPECT_EQ(session->numbers("sum", 1), (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(session->numbers(out, 1), (std::vector<double>{2, 4, 6}));
  EXPECT_FALSE(session->find("nothing"));
  std::vector<std::byte> bytes(in.bytes());
  session->read(in, 1, bytes);
  session->stage(in, 0, bytes);
  session->run();
  EXPECT_EQ(session->read<float>("doubled", 0), (std::vector<float>{2, 4, 6}));
}

TEST(Session, WrongAccessIsNamed) {
  Graph g;
  g.output("y", g.input("x", {{3}, DType::f32}) * 2.0);
  const auto session = make_session(test::test_plan(g));
  const Handle x = session->handle("x");
  std::vector<std::byte> few(4);
  EXPECT_NE(test::error_of([&] { session->stage(x, 0, few); }).find("'x' has 12 bytes but 4 were given"),
            std::string::npos);
  EXPECT_NE(test::error_of([&] { session->read(x, 0, few); }).find("'x' has 12 bytes but 4"), std::string::npos);
  EXPECT_NE(test::error_of([&] { session->number(x, 0, 3); }).find("element 3"), std::string::npos);
  EXPECT_NE(test::error_of([&] { session->number(x, 1); }).find("member 1"), std::string::npos);
  EXPECT_NE(test::error_of([&] { session->read<double>(x); }).find("accessed as f64"), std::string::npos);
  EXPECT_NE(test::error_of([&] { session->handle("xx"); }).find("did you mean"), std::string::npos);
}

std::shared_ptr<const Plan> doubled(const Type& type, const std::string& parameter = "w") {
  Graph graph;
  graph.output("y", graph.parameter(parameter, type) * 2.0);
  return compile(graph, cpu_backend());
}

TEST(Session, TakesTensorsOverFromAnother) {
  const Type type{{3}, DType::f64};
  CpuSession from(doubled(type), {.members = 2, .threads = 1}), to(doubled(type), {.members = 2, .threads = 1});
  from.write<double>("w", std::vector<double>{1, 2, 3}, 0);
  from.write<double>("w", std::vector<double>{4, 5, 6}, 1);
  const std::vector<std::string> names = {"w"};
  to.copy(from, names);
  to.run();
  EXPECT_EQ(to.read<double>("y", 0), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(to.read<double>("y", 1), (std::vector<double>{8, 10, 12}));
}

TEST(Session, ForgetsWhatATensorHeldWhenItIsWritten) {
  const Type type{{3}, DType::f64};
  CpuSession from(doubled(type), {.members = 2, .threads = 1}), to(doubled(type), {.members = 2, .threads = 1});
  const Handle w = to.handle("w");
  const std::vector<double> values = {1, 2, 3};
  const std::vector<std::string> names = {"w"};
  EXPECT_FALSE(to.has_content(w, 1, 5));
  to.write<double>(w, values, 1);
  to.mark_content(w, 1, 5);
  EXPECT_TRUE(to.has_content(w, 1, 5));
  EXPECT_FALSE(to.has_content(w, 1, 6));
  EXPECT_FALSE(to.has_content(w, 0, 5));
  to.write<double>(w, values, 0);
  EXPECT_TRUE(to.has_content(w, 1, 5)) << "another member was written";
  to.stage_number(w, 1, 2.0);
  EXPECT_FALSE(to.has_content(w, 1, 5));
  to.mark_content(w, 1, 5);
  to.copy(from, names);
  EXPECT_FALSE(to.has_content(w, 1, 5));
}

TEST(Session, RefusesTensorsThatDoNotFit) {
  CpuSession to(doubled({{3}, DType::f64}), {.members = 2, .threads = 1});
  const std::vector<std::string> names = {"w"};
  CpuSession fewer(doubled({{3}, DType::f64}), {.members = 1, .threads = 1});
  CpuSession longer(doubled({{4}, DType::f64}), {.members = 2, .threads = 1});
  CpuSession unnamed(doubled({{3}, DType::f64}, "v"), {.members = 2, .threads = 1});
  EXPECT_THROW(to.copy(fewer, names), Error);
  EXPECT_THROW(to.copy(longer, names), Error);
  EXPECT_THROW(to.copy(unnamed, names), Error);
}

}  // namespace
}  // namespace norma
