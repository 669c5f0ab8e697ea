// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "dtensor/core/error.hpp"

namespace dtensor::checkpoint {

namespace fs = std::filesystem;

namespace {

bool is_checkpoint_file(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return entry.is_regular_file() &&
         (name == index_file_name || (name.starts_with("rank_") && name.ends_with(".h5")));
}

// Only what `save` wrote: whatever else came there meanwhile is somebody's data.
void remove_checkpoint(const std::string& directory) noexcept {
  try {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (is_checkpoint_file(entry)) fs::remove(entry.path());
    }
    fs::remove(directory);
  } catch (const std::exception&) {
    // What is left is garbage beside a checkpoint that is as it should be.
  }
}

// Waits until the names in a directory are on the disk.
void sync(const FileContext& directory) {
  const int descriptor = ::open(directory.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) directory.fail(fmt::format("open failed ({})", std::strerror(errno)));
  const int status = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (status != 0) directory.fail(fmt::format("fsync failed ({})", std::strerror(status)));
}

// Swaps two directories in one step where the system can. Returns 0 or the error number.
int exchange_at_once([[maybe_unused]] const std::string& a, [[maybe_unused]] const std::string& b) {
#ifdef RENAME_EXCHANGE
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}

// For systems that cannot: there is a moment with nothing at `b`, but never with half of anything.
void exchange_in_three_steps(const std::string& a, const std::string& b) {
  const std::string aside = a + ".old";
  fs::rename(b, aside);
  try {
    fs::rename(a, b);
  } catch (const fs::filesystem_error&) {
    fs::rename(aside, b);
    throw;
  }
  fs::rename(aside, a);
}

}  // namespace

void FileContext::fail(const std::string& problem) const {
  throw IoError(function, fmt::format("'{}': {}", path, problem), expected);
}

FileContext reading(const char* function, const std::string& directory, const std::string& file) {
  return {function, (fs::path(directory) / file).string(),
          "a checkpoint that was saved completely"};
}

FileContext writing(const char* function, const std::string& directory, const std::string& file) {
  return {function, (fs::path(directory) / file).string(),
          "a place that can be written to and has space left"};
}

std::string rank_file_name(std::int64_t rank) { return fmt::format("rank_{:05}.h5", rank); }

DirectoryReplacement::DirectoryReplacement(const char* function, const std::string& directory)
    : function_(function) {
  const FileContext context = writing(function, directory, "");
  try {
    // A symbolic link stays, and what it points to is replaced.
    fs::path target = fs::weakly_canonical(fs::absolute(directory));
    if (!target.has_filename()) target = target.parent_path();
    target_ = target.string();
    fs::create_directories(target.parent_path());
    if (fs::exists(target)) {
      if (!fs::is_directory(target)) context.fail("not a directory");
      for (const auto& entry : fs::directory_iterator(target)) {
        if (!is_checkpoint_file(entry)) {
          throw IoError(
              function,
              fmt::format("'{}', which holds '{}'", directory, entry.path().filename().string()),
              "a new directory, or one that holds nothing but a checkpoint");
        }
      }
    }
    std::random_device random;
    do {
      staging_ = fmt::format("{}.tmp-{:08x}", target_, random());
    } while (!fs::create_directory(staging_));
  } catch (const fs::filesystem_error& e) {
    context.fail(e.code().message());
  }
}

DirectoryReplacement::~DirectoryReplacement() { remove_checkpoint(staging_); }

void DirectoryReplacement::commit() {
  const FileContext context = writing(function_, target_, "");
  try {
    sync(writing(function_, staging_, ""));
    if (fs::exists(target_)) {
      const int status = exchange_at_once(staging_, target_);
      if (status == ENOSYS || status == EINVAL) {
        exchange_in_three_steps(staging_, target_);
      } else if (status != 0) {
        context.fail(fmt::format("rename failed ({})", std::strerror(status)));
      }
    } else {
      fs::rename(staging_, target_);
    }
    sync(writing(function_, fs::path(target_).parent_path().string(), ""));
  } catch (const fs::filesystem_error& e) {
    context.fail(e.code().message());
  }
}

}  // namespace dtensor::checkpoint
