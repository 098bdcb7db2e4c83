// A program for the shim's own test. "every": each call that the shim must see, once. "replace": the file 'out' is
// written the careful way; "careless": the same without fsync. Ends with 0, or with 2 and the number of the error.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

extern "C" int __open_2(const char*, int);
extern "C" int __open64_2(const char*, int);

namespace {

void expect(bool success) {
  if (success) return;
  std::fprintf(stderr, "%d\n", errno);
  std::exit(2);
}

void writes() {
  const int file = ::open("a", O_RDWR | O_CREAT, 0666);
  expect(file >= 0 && ::write(file, "12345678", 8) == 8 && ::pwrite(file, "x", 1, 0) == 1);
  char one[] = "ab", two[] = "cd", read_back[4];
  const iovec parts[] = {{one, 2}, {two, 2}};
  expect(::writev(file, parts, 2) == 4 && ::pwritev(file, parts, 2, 0) == 4);
  expect(::ftruncate(file, 6) == 0 && ::fsync(file) == 0 && ::fdatasync(file) == 0);
  expect(::flock(file, LOCK_EX) == 0 && ::pread(file, read_back, 4, 0) == 4 && std::string(read_back, 4) == "abcd");
  void* const map = ::mmap(nullptr, 6, PROT_READ, MAP_SHARED, file, 0);
  expect(map != MAP_FAILED && ::munmap(map, 6) == 0);
  const int copy = ::openat(AT_FDCWD, "b", O_WRONLY | O_CREAT, 0666);
  off_t start = 0;
  expect(copy >= 0 && ::sendfile(copy, file, &start, 6) == 6);
  expect(::close(copy) == 0 && ::close(file) == 0);
}

void names() {
  expect(::mkdir("folder", 0777) == 0 && ::rename("b", "folder/c") == 0 && ::link("a", "d") == 0);
  const int folder = ::open64("folder", O_RDONLY | O_DIRECTORY);
  expect(folder >= 0 && ::mkdirat(folder, "inner", 0777) == 0 && ::renameat(folder, "c", folder, "e") == 0);
  expect(::symlinkat("e", folder, "f") == 0 && ::unlinkat(folder, "f", 0) == 0 && ::fsync(folder) == 0);
  expect(::close(folder) == 0 && ::rmdir("folder/inner") == 0 && ::unlink("d") == 0 && ::truncate("a", 1) == 0);
  expect(std::remove("folder/e") == 0);
}

// What others call for us: checked variants, streams and folders of the standard library.
void through_libraries() {
  const int checked = ::__open_2("a", O_RDONLY), wide = ::__open64_2("a", O_RDONLY);
  expect(checked >= 0 && wide >= 0 && ::close(checked) == 0 && ::close(wide) == 0);
  const int created = ::creat("g", 0666);
  expect(created >= 0 && ::close(created) == 0);
  std::ofstream stream("h");
  expect(static_cast<bool>(stream << std::string(10, 'h') << std::flush));
  stream.close();
  std::filesystem::rename("h", "i");
  std::filesystem::create_directories("folder/j");
}

void replace(bool careful) {
  const int file = ::open("new", O_WRONLY | O_CREAT, 0666);
  expect(file >= 0);
  const std::string text = "new contents";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file, text.data() + done, text.size() - done);
    expect(written >= 0);
    done += static_cast<std::size_t>(written);
  }
  expect(!careful || ::fsync(file) == 0);
  expect(::close(file) == 0 && ::rename("new", "out") == 0);
  const int folder = ::open(".", O_RDONLY | O_DIRECTORY);
  expect(!careful || ::fsync(folder) == 0);
  expect(::flock(folder, LOCK_EX) == 0);  // something to die at when all is done
}

}  // namespace

int main(int, char** words) {
  const std::string what = words[1];
  if (what == "every") {
    writes();
    names();
    through_libraries();
  } else {
    replace(what == "replace");
  }
}
