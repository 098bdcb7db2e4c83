// A folder leads nowhere but into itself, whatever links lie in it.
#include "norma/store/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "norma/store/atomic_file.h"
#include "norma/store/directory_lock.h"
#include "norma/store/metrics.h"
#include "norma/store/run_directory.h"
#include "store/store_check.h"
#include "sync_points.h"

namespace norma {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

void expect_link_refused(const std::string& message) {
  EXPECT_NE(message.find("is a link; norma follows none inside its own directories"), std::string::npos) << message;
}

TEST(Folder, KnowsWhatIsInside) {
  const TemporaryFolder place;
  const Folder folder = Folder::make(place / "a/b/c/");
  write_file(place / "a/b/c/file", "text");
  ASSERT_EQ(::mkfifo((place / "a/b/c/pipe").c_str(), 0600), 0);
  test::fs::create_symlink("file", place / "a/b/c/link");
  test::fs::create_directory(place / "a/b/c/sub");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"file", "link", "pipe", "sub"}));
  EXPECT_EQ(folder.kind("file"), PathKind::file);
  EXPECT_EQ(folder.kind("link"), PathKind::link);
  EXPECT_EQ(folder.kind("pipe"), PathKind::other);
  EXPECT_EQ(folder.kind("sub"), PathKind::folder);
  EXPECT_EQ(folder.kind("none"), PathKind::nothing);
  EXPECT_EQ(folder.read("file"), "text");
  expect_link_refused(error_of([&] { folder.read("link"); }));
  EXPECT_NE(error_of([&] { folder.read("pipe"); }).find("a device, pipe or socket; expected a file"),
            std::string::npos);
  EXPECT_NE(error_of([&] { folder.read("none"); }).find("No such file"), std::string::npos);
  EXPECT_NE(error_of([&] { folder.sub("file"); }).find("is a file; expected a folder"), std::string::npos);
}

TEST(Folder, FollowsNoLinkToAFolder) {
  const TemporaryFolder place;
  test::fs::create_directories(place / "mine");
  test::fs::create_directories(place / "others");
  write_file(place / "others/thesis", "x");
  test::fs::create_directory_symlink(place / "others", place / "mine/sub");
  const Folder folder(place / "mine");
  expect_link_refused(error_of([&] { folder.sub("sub"); }));
  expect_link_refused(error_of([&] { folder.make_sub("sub"); }));
  EXPECT_FALSE(remove_run(folder, "sub"));
  EXPECT_TRUE(test::fs::exists(place / "others/thesis"));
  EXPECT_EQ(Folder(place / "mine/sub").names().size(), 1u) << "the path that a user gives may be a link";
}

TEST(Folder, StaysWhereItWasOpened) {
  const TemporaryFolder place;
  const Folder folder = Folder::make(place / "a");
  test::fs::rename(place / "a", place / "moved");
  test::fs::create_directory(place / "a");
  write_atomically(folder, "file", "text");
  EXPECT_EQ(read_file(place / "moved/file"), "text");
  EXPECT_TRUE(test::fs::is_empty(place / "a"));
}

TEST(Folder, PathsThatCannotBeLookedAtAreErrors) {
  const TemporaryFolder place;
  test::fs::create_symlink("loop", place / "loop");
  EXPECT_NE(error_of([&] { kind_of(place / "loop"); }).find("Too many levels of symbolic links"), std::string::npos);
  EXPECT_NE(error_of([&] { kind_of(place / std::string(300, 'x')); }).find("File name too long"), std::string::npos);
  EXPECT_NE(error_of([&] { RunView(place / "loop/run").exists(); }), "");
  EXPECT_NE(error_of([&] { RunView(place / std::string(300, 'x')).is_done(); }), "");
  EXPECT_EQ(kind_of(place / "none/at/all"), PathKind::nothing);
  EXPECT_NE(error_of([&] { Folder::make(place / "loop"); }), "");
}

// The three that were opened without a look: what they lead to was cut to nothing.
TEST(RunDirectory, NoLinkInItIsFollowed) {
  const TemporaryFolder place;
  const std::string thesis = place / "thesis";
  write_file(thesis, "years of work");
  test::fs::create_directory(place / "others");
  write_file(place / "others/step-00000001.safetensors", "others' work");
  for (const std::string name : {".lock", "metrics.jsonl"}) {
    const std::string run = place / ("run" + name);
    { RunDirectory::create(run, "seed = 1", "{}"); }
    test::fs::remove(run + "/" + name);
    test::fs::create_symlink(thesis, run + "/" + name);
    expect_link_refused(error_of([&] { RunDirectory::resume(run).open_metrics(-1); }));
    EXPECT_EQ(read_file(thesis), "years of work") << name;
  }
  const std::string run = place / "run";
  { RunDirectory::create(run, "seed = 1", "{}"); }
  test::fs::remove(run + "/checkpoints");
  test::fs::create_directory_symlink(place / "others", run + "/checkpoints");
  expect_link_refused(error_of([&] { RunDirectory::resume(run); }));
  EXPECT_EQ(read_file(place / "others/step-00000001.safetensors"), "others' work");
}

TEST(RunDirectory, RemovingARunRemovesWhatNormaMade) {
  const TemporaryFolder place;
  const auto make = [&](const std::string& name) {
    RunDirectory run = RunDirectory::create(place / name, "seed = 1", "{}", "sublayer = 'x'");
    run.open_metrics(-1).append(1, std::vector<Metric>{{"loss", 1.0}});
    run.open_events(-1).flush();
    const std::vector<float> weights(3);
    run.save_checkpoint(1, std::vector<TensorData>{tensor_data<float>("w", {3}, weights)});
    run.finish("{}");
  };
  make("a");
  make("b");
  write_file(place / "b/notes.txt", "mine");
  write_file(place / "b/checkpoints/mine.safetensors", "mine");
  const Folder folder(place.path());
  EXPECT_TRUE(remove_run(folder, "a"));
  EXPECT_FALSE(test::fs::exists(place / "a"));
  EXPECT_FALSE(remove_run(folder, "b"));
  EXPECT_EQ(read_file(place / "b/notes.txt"), "mine");
  EXPECT_EQ(read_file(place / "b/checkpoints/mine.safetensors"), "mine");
  EXPECT_FALSE(test::fs::exists(place / "b/config.toml"));
  EXPECT_TRUE(remove_run(folder, "none"));
}

// Two that begin at the same time: the second is told who is there, not that there is a run to be resumed.
TEST(RunDirectory, ASecondBeginningIsToldWhoWasFaster) {
  const TemporaryFolder place;
  const RunDirectory first = RunDirectory::create(place / "a", "seed = 1", "{}");
  const std::string message = error_of([&] { RunDirectory::create(place / "a", "seed = 1", "{}"); });
  EXPECT_NE(message.find("is in use by process " + std::to_string(::getpid())), std::string::npos) << message;
}

TEST(RunDirectory, TheEntryOfANewLogIsOnDiskBeforeTheFirstCheckpoint) {
  const TemporaryFolder place;
  RunDirectory run = RunDirectory::create(place / "a", "seed = 1", "{}");
  std::vector<std::string> synced;
  test::on_sync = [&](const std::string& path) { synced.push_back(path); };
  MetricsLog log = run.open_metrics(-1);
  test::on_sync = nullptr;
  const std::string folder = test::fs::canonical(place / "a").string();
  EXPECT_EQ(synced, (std::vector<std::string>{folder + "/metrics.jsonl", folder}));
}

TEST(RunDirectory, ItsOwnEntryAndThoseAboveAreOnDisk) {
  const TemporaryFolder place;
  std::vector<std::string> synced;
  test::on_sync = [&](const std::string& path) { synced.push_back(path); };
  Folder::make(place / "x/y");
  test::on_sync = nullptr;
  const std::string root = test::fs::canonical(place.path()).string();
  EXPECT_EQ(synced, (std::vector<std::string>{root, root + "/x"}));
}

}  // namespace
}  // namespace norma
