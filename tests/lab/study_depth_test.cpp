// How long a study measures the use of depth, in which order, and what it says of what it leaves out.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/study/depth.h"
#include "lab/study/parts.h"

namespace norma {
namespace {

StudyConfig with_budget(const char* budget) {
  StudyConfig config;
  config.budget = parse_budget(budget);
  return config;
}

DepthSubject subject_of_scheme(std::size_t scheme) {
  DepthSubject subject;
  subject.scheme = scheme;
  subject.directory = "/nowhere";
  return subject;
}

// A fifth, but at least half a minute unless that is most of a short study; training gets what is left.
TEST(StudyDepth, AFifthOfATimeAndAtLeastHalfAMinute) {
  EXPECT_EQ(seconds_for_depth_use(with_budget("1h")), 720);
  EXPECT_EQ(seconds_for_depth_use(with_budget("150s")), 30);
  EXPECT_EQ(seconds_for_depth_use(with_budget("160s")), 32);
  EXPECT_EQ(seconds_for_depth_use(with_budget("100s")), 30);
  EXPECT_EQ(seconds_for_depth_use(with_budget("60s")), 20);
  for (const char* unbounded : {"40000steps", "1e9tokens", "0"})
    EXPECT_TRUE(std::isinf(seconds_for_depth_use(with_budget(unbounded)))) << unbounded;
  for (const char* budget : {"10s", "60s", "150s", "1h"}) {
    const StudyConfig config = with_budget(budget);
    EXPECT_GT(seconds_for_training(config), 0) << budget;
    EXPECT_LE(seconds_for_training(config) + seconds_for_depth_use(config), config.budget.amount) << budget;
  }
  StudyConfig whatever = with_budget("1h");
  whatever.depth_use_whatever_it_takes = true;
  EXPECT_TRUE(std::isinf(seconds_for_depth_use(whatever)));
}

TEST(StudyDepth, EverySchemeComesOnceBeforeAnyComesTwice) {
  std::vector<DepthSubject> subjects;
  for (const std::size_t scheme : {0u, 0u, 0u, 1u, 2u, 2u}) subjects.push_back(subject_of_scheme(scheme));
  EXPECT_EQ(by_turns(subjects), (std::vector<std::size_t>{0, 3, 4, 1, 5, 2}));
}

// No time at all: nothing is opened, and a note for every scheme that was to be measured says so.
TEST(StudyDepth, WhatWasLeftOutIsSaid) {
  std::vector<SchemeEvidence> evidence(3);
  evidence[0].title = "Pre-LN", evidence[1].title = "Post-LN", evidence[2].title = "ReZero";
  const std::vector<DepthSubject> subjects = {subject_of_scheme(0), subject_of_scheme(0), subject_of_scheme(2)};
  Findings findings;
  StudyObserver observer;
  std::atomic<bool> stop = false;
  measure_depth_of(subjects, nullptr, 2, evidence, findings, observer, stop, -1);
  ASSERT_EQ(findings.notes.size(), 2u) << "nobody asked for Post-LN";
  EXPECT_EQ(findings.notes[0].find("Pre-LN: use of depth was left out, it takes longer than"), 0u) << findings.notes[0];
  EXPECT_NE(findings.notes[0].find("--depth-use measures it whatever it takes"), std::string::npos);
  EXPECT_EQ(findings.notes[1].find("ReZero: "), 0u);
  EXPECT_TRUE(findings.depth_use.empty());
  for (const SchemeEvidence& one : evidence) EXPECT_FALSE(one.effective_depth);
}

}  // namespace
}  // namespace norma
