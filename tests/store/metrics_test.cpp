// Metrics come back bit for bit, Python reads them, and a resumed log continues where the run does.
#include "norma/store/metrics.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "norma/store/file_fingerprint.h"
#include "store/metrics_line.h"
#include "store/store_check.h"

namespace norma {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Metric> loss(double value) { return {{"loss", value}}; }

TEST(Metrics, ALineIsWhatItLooksLike) {
  const std::vector<Metric> metrics = {
      {"loss", 2.5},       {"lr", 1e-4},          {"tokens", 1 << 20},
      {"diverged", false}, {"note", "a \"b\"\n"}, {"rms", std::vector<double>{1, kNan, -0.0}},
      {"norm", kInfinity}, {"low", -kInfinity},   {"none", std::vector<double>{}},
      {"whole", 3.0},      {"large", 1e300}};
  EXPECT_EQ(print_metrics_line(7, metrics),
            "{\"step\":7,\"loss\":2.5,\"lr\":0.0001,\"tokens\":1048576,\"diverged\":false,\"note\":\"a \\\"b\\\"\\n\","
            "\"rms\":[1.0,NaN,-0.0],\"norm\":Infinity,\"low\":-Infinity,\"none\":[],\"whole\":3.0,\"large\":1e+300}\n");
}

TEST(Metrics, RoundTrip) {
  const TemporaryFolder directory;
  {
    MetricsLog log = MetricsLog::create(directory / "m");
    EXPECT_EQ(log.last_step(), -1);
    log.append(0,
               std::vector<Metric>{
                   {"loss", kNan}, {"n", -5}, {"ok", true}, {"text", "ü"}, {"x", std::vector<double>{kInfinity, 2}}});
    log.append(0, loss(0.1));
    log.append(9'000'000'000, {});
    EXPECT_EQ(log.last_step(), 9'000'000'000);
  }
  const std::vector<MetricRecord> records = read_metrics(directory / "m");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_TRUE(std::isnan(records[0].number("loss")));
  EXPECT_EQ(records[0].number("n"), -5);
  EXPECT_EQ(std::get<bool>(*records[0].find("ok")), true);
  EXPECT_EQ(std::get<std::string>(*records[0].find("text")), "ü");
  EXPECT_EQ(std::get<std::vector<double>>(*records[0].find("x")), (std::vector<double>{kInfinity, 2}));
  EXPECT_EQ(records[1].number("loss"), 0.1);
  EXPECT_EQ(records[2].step, 9'000'000'000);
  EXPECT_EQ(records[2].find("loss"), nullptr);
  EXPECT_NE(error_of([&] { records[1].number("lost"); }).find("did you mean 'loss'?"), std::string::npos);
  EXPECT_NE(error_of([&] { records[0].number("text"); }).find("is not a number"), std::string::npos);
}

TEST(Metrics, EveryDoubleComesBackBitForBit) {
  std::mt19937_64 random(3);
  std::vector<double> values = {5e-324, 1.7976931348623157e308, 0.1, 1.0 / 3, -0.0, 1e16, 123456789012345678.0};
  while (values.size() < 200'000) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    const std::string line = print_metrics_line(0, loss(value));
    const MetricRecord record = parse_metrics_line(std::string_view(line).substr(0, line.size() - 1));
    ASSERT_EQ(std::bit_cast<std::uint64_t>(std::get<double>(*record.find("loss"))), std::bit_cast<std::uint64_t>(value))
        << line;
  }
}

TEST(Metrics, WhatIsNoRecordIsRefused) {
  for (const char* line : {"",
                           "{",
                           "{}",
                           "[]",
                           "{\"step\":1",
                           "{\"step\":1}}",
                           "{\"step\":1.5}",
                           "{\"step\":-1}",
                           "{\"step\":\"1\"}",
                           "{\"step\":1,}",
                           "{\"step\":1,\"a\"}",
                           "{\"step\":1,\"a\":}",
                           "{\"step\":1,\"a\":null}",
                           "{\"step\":1,\"a\":{}}",
                           "{\"step\":1,\"a\":[true]}",
                           "{\"step\":1,\"a\":[1,]}",
                           "{\"step\":1,\"a\":1e999}",
                           "{\"step\":1,\"a\":1,\"a\":2}",
                           "{\"step\":1,\"a\":\"\\\"}",
                           "{\"step\":1,\"a\":\"\xff\"}",
                           "{\"step\":1,\"a\":nan}",
                           "{\"step\":1,\"a\":--1}",
                           "{\"step\":1,\"a\":\"\\",
                           "{\"step\":1,\"a\":[[1]]}",
                           "{\"a\":1}"}) {
    EXPECT_NE(error_of([&] { parse_metrics_line(line); }), "") << line;
  }
  EXPECT_EQ(parse_metrics_line(" { \"a\" : [ 1 , -Infinity ] , \"step\" : 4 } \r").step, 4);
}

TEST(Metrics, RandomDamageNeverCrashes) {
  const std::string line = print_metrics_line(
      12, std::vector<Metric>{{"a\n\"", -1.5e-7}, {"v", std::vector<double>{1, kNan}}, {"s", "\\u"}});
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = line.substr(0, line.size() - 1 - random() % 4);
    for (unsigned i = 0; i <= random() % 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    error_of([&] { parse_metrics_line(damaged); });
  }
}

TEST(Metrics, ALogRefusesWhatWouldMakeItUnreadable) {
  const TemporaryFolder directory;
  MetricsLog log = MetricsLog::create(directory / "m");
  log.append(5, loss(1));
  EXPECT_NE(error_of([&] { log.append(4, loss(1)); }).find("step 4 cannot follow step 5"), std::string::npos);
  EXPECT_NE(error_of([&] {
              log.append(6, std::vector<Metric>{{"a", 1}, {"a", 2}});
            }).find("'a' twice"),
            std::string::npos);
  EXPECT_NE(error_of([&] { log.append(6, std::vector<Metric>{{"step", 1}}); }).find("'step' twice"), std::string::npos);
  EXPECT_NE(error_of([&] { log.append(6, std::vector<Metric>{{"a", "\xff"}}); }).find("UTF-8"), std::string::npos);
  EXPECT_NE(error_of([&] { MetricsLog::create(directory / "m"); }).find("File exists"), std::string::npos);
  log.flush();
  EXPECT_EQ(read_metrics(directory / "m").size(), 1u);
}

TEST(Metrics, FlushPolicyIsKept) {
  const TemporaryFolder directory;
  MetricsLog log = MetricsLog::create(directory / "m", {.records = 3, .age = std::chrono::hours(1)});
  for (int step = 0; step < 8; ++step) {
    log.append(step, loss(step));
    EXPECT_EQ(read_metrics(directory / "m").size(), static_cast<std::size_t>((step + 1) / 3 * 3));
  }
  log.sync();
  EXPECT_EQ(read_metrics(directory / "m").size(), 8u);
  MetricsLog at_once = MetricsLog::create(directory / "n", {.records = 1000, .age = std::chrono::milliseconds(0)});
  at_once.append(0, loss(0));
  EXPECT_EQ(read_metrics(directory / "n").size(), 1u);
}

TEST(Metrics, ResumeCutsLaterStepsAndATornLine) {
  const TemporaryFolder directory;
  std::string whole, up_to_four;
  for (int step = 0; step < 10; ++step) {
    whole += print_metrics_line(step, loss(step));
    if (step == 4) up_to_four = whole += print_metrics_line(step, std::vector<Metric>{{"val", 0.5}});
  }
  // Every way in which a kill can end the file.
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    write_file(directory / "m", whole.substr(0, size));
    MetricsLog log = MetricsLog::resume(directory / "m", 4);
    const std::string kept = read_file(directory / "m");
    const std::size_t end_of_lines = size == 0 ? 0 : whole.rfind('\n', size - 1) + 1;
    ASSERT_EQ(kept, up_to_four.substr(0, std::min(up_to_four.size(), end_of_lines))) << size;
    log.append(5, loss(55));
    log.flush();
    ASSERT_EQ(read_metrics(directory / "m").back().number("loss"), 55);
  }
  MetricsLog missing = MetricsLog::resume(directory / "other", 4);
  missing.append(5, loss(1));
}

TEST(Metrics, ResumeDoesNotHideDamage) {
  const TemporaryFolder directory;
  const auto resume = [&](const std::string& text) {
    write_file(directory / "m", text);
    return error_of([&] { MetricsLog::resume(directory / "m", 4); });
  };
  const std::string one = print_metrics_line(1, {}), two = print_metrics_line(2, {}), nine = print_metrics_line(9, {});
  const std::string damaged = resume(one + "{\"step\":???}\n" + two);
  EXPECT_NE(damaged.find("line 2 is damaged"), std::string::npos) << damaged;
  EXPECT_NE(resume(two + one).find("line 2: step 1 follows step 2"), std::string::npos);
  EXPECT_NE(resume(one + nine + two).find("line 2 is of step 9, but line 3 is of step 2"), std::string::npos);
  EXPECT_EQ(resume(one + "{\"step\":???}\n" + nine), "") << "nothing that the run needs is lost";
  EXPECT_EQ(read_file(directory / "m"), one);
  EXPECT_NE(
      error_of([&] { write_file(directory / "m", one + "\n" + two), read_metrics(directory / "m"); }).find("line 2"),
      std::string::npos);
}

TEST(Metrics, ResumeNoticesAGap) {
  const TemporaryFolder directory;
  const Folder folder(directory.path());
  const std::vector<std::int64_t> expected = {1, 3, 6};
  const auto resume = [&](const std::vector<std::int64_t>& steps) {
    std::string text;
    for (const std::int64_t step : steps) text += print_metrics_line(step, {});
    write_file(directory / "m", text);
    const std::string message = error_of([&] { MetricsLog::resume(folder, "m", 7, {}, expected); });
    if (!message.empty()) {
      EXPECT_EQ(read_file(directory / "m"), text) << "left as it is";
    }
    return message;
  };
  EXPECT_EQ(resume({1, 2, 3, 3, 6}), "");
  EXPECT_EQ(resume({1, 3, 6, 7, 9}), "");
  EXPECT_NE(resume({}).find("has no record of step 1, though the checkpoint is of step 7"), std::string::npos);
  EXPECT_NE(resume({9}).find("step 1,"), std::string::npos);
  EXPECT_NE(resume({1, 3}).find("step 6,"), std::string::npos);
  EXPECT_NE(resume({3, 6}).find("step 1,"), std::string::npos);
  EXPECT_NE(resume({1, 6}).find("step 3,"), std::string::npos);
  EXPECT_NE(error_of([&] { MetricsLog::resume(folder, "none", 7, {}, expected); }).find("step 1,"), std::string::npos);
  EXPECT_FALSE(test::fs::exists(directory / "none")) << "nothing is begun in its place";
}

TEST(Metrics, ASealNoticesEveryFlippedBit) {
  const TemporaryFolder directory;
  const Folder folder(directory.path());
  {
    MetricsLog log = MetricsLog::resume(folder, "m.jsonl", -1);
    for (int step = 1; step <= 4; ++step) log.append(step, loss(step));
    log.seal();
    log.append(5, loss(5));  // behind the checkpoint of step 4
    log.flush();
  }
  const std::string whole = read_file(directory / "m.jsonl"), seal = read_file(directory / "m.sum");
  const std::size_t sealed = whole.size() - print_metrics_line(5, loss(5)).size();
  EXPECT_EQ(seal, fmt::format("{} {}\n", sealed, hash_text(whole.substr(0, sealed))));
  for (std::size_t bit = 0; bit < 8 * sealed; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_file(directory / "m.jsonl", damaged);
    ASSERT_NE(error_of([&] { MetricsLog::resume(folder, "m.jsonl", 4); }), "") << bit;
    ASSERT_NE(error_of([&] { verify_metrics(folder, "m.jsonl"); }), "") << bit;
    ASSERT_EQ(read_file(directory / "m.jsonl"), damaged) << "left as it is";
  }
  for (const std::string& damaged : {std::string(), whole.substr(0, sealed - 1)}) {
    write_file(directory / "m.jsonl", damaged);
    EXPECT_NE(error_of([&] { MetricsLog::resume(folder, "m.jsonl", 4); }), "");
  }
  write_file(directory / "m.jsonl", whole);
  verify_metrics(folder, "m.jsonl");
  // From an earlier checkpoint: the seal is that of what stays, and so is the next one.
  MetricsLog log = MetricsLog::resume(folder, "m.jsonl", 2);
  verify_metrics(folder, "m.jsonl");
  log.append(3, loss(30));
  log.seal();
  EXPECT_EQ(read_file(directory / "m.sum"), fmt::format("{} {}\n", test::fs::file_size(directory / "m.jsonl"),
                                                        hash_text(read_file(directory / "m.jsonl"))));
}

TEST(Metrics, ALineThatCouldNotBeWrittenIsTakenBack) {
  const TemporaryFolder directory;
  MetricsLog log = MetricsLog::create(directory / "m", {.records = 1});
  log.append(0, loss(0));
  {
    const test::FileSizeLimit limit(1000);
    const std::vector<Metric> large = {{"note", std::string(5000, 'x')}};
    const std::string message = error_of([&] { log.append(1, large); });
    EXPECT_NE(message.find("cannot append to"), std::string::npos) << message;
    EXPECT_NE(message.find("File too large"), std::string::npos) << message;
    EXPECT_EQ(read_file(directory / "m"), print_metrics_line(0, loss(0)));
  }
  log.append(2, loss(2));  // there is room again: nothing is lost
  const std::vector<MetricRecord> records = read_metrics(directory / "m");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(std::get<std::string>(*records[1].find("note")).size(), 5000u);
}

TEST(Metrics, PythonReadsThem) {
  const TemporaryFolder directory;
  {
    MetricsLog log = MetricsLog::create(directory / "m");
    log.append(3, std::vector<Metric>{{"loss", kNan},
                                      {"a", 0.1},
                                      {"b", -kInfinity},
                                      {"c", std::vector<double>{1, kInfinity}},
                                      {"d", "ü\"\t"},
                                      {"e", true},
                                      {"f", 7},
                                      {"g", 5e-324}});
  }
  const test::ScriptResult result = test::run_script("read_metrics.py", directory / "m");
  if (result.exit_status == test::kSkipped) GTEST_SKIP() << result.output;
  EXPECT_EQ(result.output, "step=3 loss=nan a=0.1 b=-inf c=[1.0, inf] d='ü\"\\t' e=True f=7 g=5e-324\n");
}

}  // namespace
}  // namespace norma
