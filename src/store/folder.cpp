#include "norma/store/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "store/file_error.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

PathKind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return PathKind::file;
  if (S_ISDIR(mode)) return PathKind::folder;
  return S_ISLNK(mode) ? PathKind::link : PathKind::other;
}

int open_folder(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), kFolderFlags);
  if (descriptor < 0) fail_with_errno("open the folder", path, errno);
  return descriptor;
}

// The folders above `path` that are missing, the topmost first, and itself if it is.
std::vector<fs::path> missing_folders(fs::path path) {
  std::vector<fs::path> missing;
  if (!path.has_filename()) path = path.parent_path();  // a slash at the end
  while (!path.empty() && kind_of(path) == PathKind::nothing) {
    missing.push_back(path);
    if (path == path.parent_path()) break;
    path = path.parent_path();
  }
  std::reverse(missing.begin(), missing.end());
  return missing;
}

[[noreturn]] void fail_for_kind(const fs::path& path, PathKind found, const char* expected) {
  if (found == PathKind::link)
    fail("'{}' is a link; norma follows none inside its own directories, put what it leads to in its place",
         path.string());
  fail("'{}' is {}; expected {}", path.string(),
       found == PathKind::folder ? "a folder"
       : found == PathKind::file ? "a file"
                                 : "a device, pipe or socket",
       expected);
}

}  // namespace

PathKind kind_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return kind_of_mode(status.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return PathKind::nothing;
  fail_with_errno("look at", path, errno);
}

Folder::Folder(fs::path path, int descriptor)
    : path_(std::move(path)), descriptor_(new int(descriptor), [](const int* open) {
        ::close(*open);
        delete open;
      }) {}

Folder::Folder(const fs::path& path) : Folder(path, open_folder(path.empty() ? fs::path(".") : path)) {}

Folder Folder::make(const fs::path& path) {
  for (const fs::path& missing : missing_folders(path)) {
    // Another process may make it at the same time.
    if (::mkdir(missing.c_str(), 0777) != 0 && errno != EEXIST) fail_with_errno("create the directory", path, errno);
    Folder(missing.parent_path()).sync();  // the loss of power must not take a folder from around its files
  }
  const int descriptor = ::open(path.empty() ? "." : path.c_str(), kFolderFlags);
  if (descriptor < 0) fail_with_errno("create the directory", path, errno);
  return {path, descriptor};
}

PathKind Folder::kind(const std::string& name) const {
  struct stat status {};
  if (::fstatat(descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return kind_of_mode(status.st_mode);
  if (errno == ENOENT) return PathKind::nothing;
  fail_with_errno("look at", path_ / name, errno);
}

std::vector<std::string> Folder::names() const {
  const int copy = ::openat(descriptor(), ".", kFolderFlags);  // a stream of its own, from the first entry on
  DIR* const stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    fail_with_errno("list", path_, error);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(stream);
  if (error != 0) fail_with_errno("list", path_, error);
  std::sort(names.begin(), names.end());
  return names;
}

Folder Folder::sub(const std::string& name) const {
  const int descriptor = ::openat(this->descriptor(), name.c_str(), kFolderFlags | O_NOFOLLOW);
  if (descriptor >= 0) return {path_ / name, descriptor};
  const int error = errno;
  const PathKind found = kind(name);
  if (found != PathKind::nothing && found != PathKind::folder) fail_for_kind(path_ / name, found, "a folder");
  fail_with_errno("open the folder", path_ / name, error);
}

Folder Folder::make_sub(const std::string& name) const {
  if (::mkdirat(descriptor(), name.c_str(), 0777) == 0) {
    sync();
  } else if (errno != EEXIST) {
    fail_with_errno("create the directory", path_ / name, errno);
  }
  return sub(name);
}

int Folder::open(const std::string& name, int flags) const {
  // Without O_NONBLOCK, opening a named pipe would wait for its other end.
  const int opened = ::openat(descriptor(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (opened < 0) {
    const int error = errno;
    if (error == ELOOP && kind(name) == PathKind::link) fail_for_kind(path_ / name, PathKind::link, "a file");
    errno = error;
    return opened;
  }
  struct stat status {};
  if (::fstat(opened, &status) == 0 && S_ISREG(status.st_mode)) return opened;
  ::close(opened);
  fail_for_kind(path_ / name, kind_of_mode(status.st_mode), "a file");
}

std::string Folder::read(const std::string& name) const {
  const int file = open(name, O_RDONLY);
  if (file < 0) fail_with_errno("read", path_ / name, errno);
  std::string text;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int error = got < 0 ? errno : 0;
      ::close(file);
      if (error != 0) fail_with_errno("read", path_ / name, error);
      return text;
    }
    text.append(chunk, static_cast<std::size_t>(got));
  }
}

bool Folder::remove(const std::string& name) const {
  if (::unlinkat(descriptor(), name.c_str(), 0) == 0) return true;
  if (errno != ENOENT) fail_with_errno("remove", path_ / name, errno);
  return false;
}

bool Folder::remove_if_empty(const std::string& name) const {
  if (::unlinkat(descriptor(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno != ENOTEMPTY && errno != EEXIST) fail_with_errno("remove", path_ / name, errno);
  return false;
}

int Folder::rename(const std::string& from, const std::string& to) const {
  return ::renameat(descriptor(), from.c_str(), descriptor(), to.c_str()) == 0 ? 0 : errno;
}

void Folder::sync() const {
  // Some file systems cannot sync a directory and say so; they are taken at their word.
  if (::fsync(descriptor()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail_with_errno("bring to disk the directory", path_, errno);
}

}  // namespace norma
