// LD_PRELOAD: stands between a program and the file system, counts the calls below a folder and lets one of them, or
// all from one on, go wrong (inject_plan.h). Calls go straight to the kernel, so that glibc's variants of one end in
// one place. What glibc does inside of itself is not seen: writes of stdio's own buffers, and listing a folder.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>
#include <vector>

#include "inject_guard.h"

namespace norma::faults {
namespace {

int open_at(const char* name, int folder, const char* path, int flags, mode_t mode) {
  const auto call = [&] { return ::syscall(SYS_openat, folder, path, flags, mode); };
  char file[kPathSize];
  if (!locate(folder, path, file)) return static_cast<int>(call());
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (!writes) return static_cast<int>(guarded(Kind::open_to_read, name, file, Space::not_needed, call));
  const bool existed = names_a_file(file);
  const long result = guarded(Kind::open_to_write, name, file, existed ? Space::not_needed : Space::needed, [&] {
    const long descriptor = call();
    if (keeps_track() && descriptor >= 0) opened(file, existed);
    return descriptor;
  });
  return static_cast<int>(result);
}

// `call` may write other bytes than the program gave: fewer, or changed ones.
template <typename Call>
ssize_t write_to(const char* name, int descriptor, const void* data, std::size_t bytes, Call call) {
  char file[kPathSize];
  if (!locate(descriptor, nullptr, file)) return call(data, bytes);
  return guarded_write(name, file, data, bytes, call);
}

std::vector<char> gathered(const iovec* parts, int count) {
  std::vector<char> all;
  for (int i = 0; i < count; ++i) {
    const char* const begin = static_cast<const char*>(parts[i].iov_base);
    all.insert(all.end(), begin, begin + parts[i].iov_len);
  }
  return all;
}

int sync_of(const char* name, int descriptor, long number) {
  const auto call = [&] { return ::syscall(number, descriptor); };
  char file[kPathSize];
  if (!locate(descriptor, nullptr, file)) return static_cast<int>(call());
  const long result = guarded(Kind::sync, name, file, Space::not_needed, call);
  if (keeps_track() && result == 0) synced(file);
  return static_cast<int>(result);
}

int rename_at(const char* name, int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  char old_file[kPathSize], file[kPathSize];
  const bool counts = locate(from_folder, from, old_file) && locate(to_folder, to, file);
  const auto call = [&] {
    if (counts && keeps_track()) about_to_remove(file);
    const long result = ::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    if (counts && keeps_track() && result == 0) renamed(old_file, file);
    return result;
  };
  return static_cast<int>(counts ? guarded(Kind::name, name, file, Space::not_needed, call) : call());
}

int unlink_at(const char* name, int folder, const char* path, int flags) {
  char file[kPathSize];
  const bool counts = locate(folder, path, file);
  const auto call = [&] {
    if (counts && keeps_track()) about_to_remove(file);
    return ::syscall(SYS_unlinkat, folder, path, flags);
  };
  return static_cast<int>(counts ? guarded(Kind::name, name, file, Space::not_needed, call) : call());
}

// mkdir, link and symlink: a new name.
template <typename Call>
int create_at(const char* name, int folder, const char* path, Call call) {
  char file[kPathSize];
  if (!locate(folder, path, file)) return static_cast<int>(call());
  return static_cast<int>(guarded(Kind::name, name, file, Space::needed, [&] {
    const long result = call();
    if (keeps_track() && result == 0) created(file);
    return result;
  }));
}

template <typename Call>
long on_descriptor(Kind kind, const char* name, int descriptor, Call call) {
  char file[kPathSize];
  if (!locate(descriptor, nullptr, file)) return call();
  return guarded(kind, name, file, Space::not_needed, call);
}

// fopen and opendir, whose results only glibc can make.
template <typename Result, typename... Arguments>
Result* made_by_glibc(Kind kind, const char* name, const char* path, Arguments... arguments) {
  using Real = Result* (*)(const char*, Arguments...);
  const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, name));
  char file[kPathSize];
  if (!locate(AT_FDCWD, path, file)) return real(path, arguments...);
  Result* result = nullptr;
  guarded(kind, name, file, Space::not_needed, [&] {
    result = real(path, arguments...);
    return 0L;
  });
  return result;
}

Kind kind_of_stream(const char* mode) {
  return std::strpbrk(mode, "wa+") != nullptr ? Kind::open_to_write : Kind::open_to_read;
}

mode_t mode_of(int flags, va_list& list) {
  const bool given = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return given ? static_cast<mode_t>(va_arg(list, unsigned)) : 0;
}

void* mapped(const char* name, void* at, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  const auto call = [&] { return ::syscall(SYS_mmap, at, bytes, protection, flags, descriptor, offset); };
  const long result = descriptor < 0 ? call() : on_descriptor(Kind::read, name, descriptor, call);
  return reinterpret_cast<void*>(result);  // NOLINT: MAP_FAILED is -1
}

}  // namespace
}  // namespace norma::faults

using namespace norma::faults;  // NOLINT: what follows stands in the global namespace

#define NORMA_VARIADIC_OPEN(name, folder)   \
  va_list list;                             \
  va_start(list, flags);                    \
  const mode_t mode = mode_of(flags, list); \
  va_end(list);                             \
  return open_at(name, folder, path, flags, mode)

extern "C" {

int open(const char* path, int flags, ...) { NORMA_VARIADIC_OPEN("open", AT_FDCWD); }
int open64(const char* path, int flags, ...) { NORMA_VARIADIC_OPEN("open", AT_FDCWD); }
int openat(int folder, const char* path, int flags, ...) { NORMA_VARIADIC_OPEN("openat", folder); }
int openat64(int folder, const char* path, int flags, ...) { NORMA_VARIADIC_OPEN("openat", folder); }
int __open_2(const char* path, int flags) { return open_at("open", AT_FDCWD, path, flags, 0); }
int __open64_2(const char* path, int flags) { return open_at("open", AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char* path, int flags) { return open_at("openat", folder, path, flags, 0); }
int __openat64_2(int folder, const char* path, int flags) { return open_at("openat", folder, path, flags, 0); }
int creat(const char* path, mode_t mode) {
  return open_at("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) {
  return open_at("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

FILE* fopen(const char* path, const char* mode) {
  return made_by_glibc<FILE>(kind_of_stream(mode), "fopen", path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return made_by_glibc<FILE>(kind_of_stream(mode), "fopen64", path, mode);
}
DIR* opendir(const char* path) { return made_by_glibc<DIR>(Kind::open_to_read, "opendir", path); }

ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  return write_to("write", descriptor, data, bytes,
                  [&](const void* from, std::size_t n) { return ::syscall(SYS_write, descriptor, from, n); });
}
ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, off_t offset) {
  return write_to("pwrite", descriptor, data, bytes, [&](const void* from, std::size_t n) {
    return ::syscall(SYS_pwrite64, descriptor, from, n, offset);
  });
}
ssize_t pwrite64(int descriptor, const void* data, std::size_t bytes, off64_t offset) {
  return pwrite(descriptor, data, bytes, offset);
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  const std::vector<char> all = gathered(parts, count);
  return write_to("writev", descriptor, all.data(), all.size(),
                  [&](const void* from, std::size_t n) { return ::syscall(SYS_write, descriptor, from, n); });
}
ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) {
  const std::vector<char> all = gathered(parts, count);
  return write_to("pwritev", descriptor, all.data(), all.size(), [&](const void* from, std::size_t n) {
    return ::syscall(SYS_pwrite64, descriptor, from, n, offset);
  });
}
ssize_t pwritev64(int descriptor, const iovec* parts, int count, off64_t offset) {
  return pwritev(descriptor, parts, count, offset);
}
ssize_t sendfile(int to, int from, off_t* offset, std::size_t bytes) noexcept {
  return write_to("sendfile", to, nullptr, bytes,
                  [&](const void*, std::size_t n) { return ::syscall(SYS_sendfile, to, from, offset, n); });
}
ssize_t sendfile64(int to, int from, off64_t* offset, std::size_t bytes) noexcept {
  return sendfile(to, from, offset, bytes);
}
ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, std::size_t bytes, unsigned flags) {
  return write_to("copy_file_range", to, nullptr, bytes, [&](const void*, std::size_t n) {
    return ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, n, flags);
  });
}

ssize_t read(int descriptor, void* data, std::size_t bytes) {
  return on_descriptor(Kind::read, "read", descriptor, [&] { return ::syscall(SYS_read, descriptor, data, bytes); });
}
ssize_t pread(int descriptor, void* data, std::size_t bytes, off_t offset) {
  return on_descriptor(Kind::read, "pread", descriptor,
                       [&] { return ::syscall(SYS_pread64, descriptor, data, bytes, offset); });
}
ssize_t pread64(int descriptor, void* data, std::size_t bytes, off64_t offset) {
  return pread(descriptor, data, bytes, offset);
}
ssize_t readv(int descriptor, const iovec* parts, int count) {
  return on_descriptor(Kind::read, "readv", descriptor, [&] { return ::syscall(SYS_readv, descriptor, parts, count); });
}
void* mmap(void* at, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
  return mapped("mmap", at, bytes, protection, flags, descriptor, offset);
}
void* mmap64(void* at, std::size_t bytes, int protection, int flags, int descriptor, off64_t offset) noexcept {
  return mapped("mmap", at, bytes, protection, flags, descriptor, offset);
}

int ftruncate(int descriptor, off_t bytes) noexcept {
  return static_cast<int>(
      on_descriptor(Kind::name, "ftruncate", descriptor, [&] { return ::syscall(SYS_ftruncate, descriptor, bytes); }));
}
int ftruncate64(int descriptor, off64_t bytes) noexcept { return ftruncate(descriptor, bytes); }
int truncate(const char* path, off_t bytes) noexcept {
  const auto call = [&] { return ::syscall(SYS_truncate, path, bytes); };
  char file[kPathSize];
  if (!locate(AT_FDCWD, path, file)) return static_cast<int>(call());
  return static_cast<int>(guarded(Kind::name, "truncate", file, Space::not_needed, call));
}
int truncate64(const char* path, off64_t bytes) noexcept { return truncate(path, bytes); }

int fsync(int descriptor) { return sync_of("fsync", descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_of("fdatasync", descriptor, SYS_fdatasync); }
int syncfs(int descriptor) noexcept { return sync_of("syncfs", descriptor, SYS_syncfs); }

int rename(const char* from, const char* to) noexcept { return rename_at("rename", AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return rename_at("renameat", from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return rename_at("renameat2", from_folder, from, to_folder, to, flags);
}
int unlink(const char* path) noexcept { return unlink_at("unlink", AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) noexcept { return unlink_at("unlinkat", folder, path, flags); }
int rmdir(const char* path) noexcept { return unlink_at("rmdir", AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  const int result = unlink_at("remove", AT_FDCWD, path, 0);
  return result != 0 && errno == EISDIR ? unlink_at("remove", AT_FDCWD, path, AT_REMOVEDIR) : result;
}
int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  return create_at("mkdir", folder, path, [&] { return ::syscall(SYS_mkdirat, folder, path, mode); });
}
int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return create_at("link", to_folder, to,
                   [&] { return ::syscall(SYS_linkat, from_folder, from, to_folder, to, flags); });
}
int link(const char* from, const char* to) noexcept { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int symlinkat(const char* target, int folder, const char* path) noexcept {
  return create_at("symlink", folder, path, [&] { return ::syscall(SYS_symlinkat, target, folder, path); });
}
int symlink(const char* target, const char* path) noexcept { return symlinkat(target, AT_FDCWD, path); }

int flock(int descriptor, int operation) noexcept {
  return static_cast<int>(
      on_descriptor(Kind::lock, "flock", descriptor, [&] { return ::syscall(SYS_flock, descriptor, operation); }));
}

// A close that fails has closed, as on Linux.
int close(int descriptor) {
  const auto call = [&] { return ::syscall(SYS_close, descriptor); };
  char file[kPathSize];
  if (!locate(descriptor, nullptr, file)) return static_cast<int>(call());
  const long flags = ::syscall(SYS_fcntl, descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return static_cast<int>(call());
  const long result = guarded(Kind::close, "close", file, Space::not_needed, call);
  if (result != 0) {
    const int error = errno;
    call();  // where the shim failed it, it is still open
    errno = error;
  }
  return static_cast<int>(result);
}

}  // extern "C"
