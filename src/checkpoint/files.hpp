// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Files and directories of checkpoints, and errors about them.
#pragma once

#include <cstdint>
#include <string>

namespace dtensor::checkpoint {

// A file that a public function works on, and what was expected of it: the text of its errors.
struct FileContext {
  const char* function;
  std::string path;
  const char* expected;

  // Throws `IoError` about this file.
  [[noreturn]] void fail(const std::string& problem) const;
};

// A file of a checkpoint, to be read or written.
FileContext reading(const char* function, const std::string& directory, const std::string& file);
FileContext writing(const char* function, const std::string& directory, const std::string& file);

inline constexpr const char* index_file_name = "index.h5";
// "rank_00003.h5".
std::string rank_file_name(std::int64_t rank);

// A directory that takes the place of another one when it is complete. For one process.
class DirectoryReplacement {
 public:
  // Makes an empty directory beside `directory`. Throws `IoError` when that cannot be, or when
  // `directory` is there and holds anything but a checkpoint.
  DirectoryReplacement(const char* function, const std::string& directory);
  // Removes the new directory when it was not committed, else what it replaced.
  ~DirectoryReplacement();
  DirectoryReplacement(const DirectoryReplacement&) = delete;
  DirectoryReplacement& operator=(const DirectoryReplacement&) = delete;

  // The new directory.
  const std::string& staging() const noexcept { return staging_; }
  // Puts it in place. Its files must be on the disk.
  void commit();

 private:
  const char* function_;
  std::string target_, staging_;
};

}  // namespace dtensor::checkpoint
