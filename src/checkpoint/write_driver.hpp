// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How HDF5 writes files: by a driver that outlives a full disk.
#pragma once

#include <memory>

#include "hdf5.hpp"

namespace dtensor::checkpoint {

// A new file. HDF5 cannot close a file whose last writes fail, and crashes when it ends. So a
// failure is kept from HDF5 and kept here: the file is as lost as it is, and can be closed.
class NewFile {
 public:
  // Throws `IoError` when the file is there already or cannot be made.
  explicit NewFile(FileContext context);

  hid_t id() const noexcept { return id_; }
  const FileContext& context() const noexcept { return context_; }
  // Throws `IoError` when something could not be written.
  void check_written() const;
  // Writes out what HDF5 still holds, waits until it is on the disk and closes the file. Throws as
  // `check_written`. Without it the file is closed, too, but may be incomplete.
  void close();

 private:
  FileContext context_;
  QuietErrors quiet_;
  std::unique_ptr<int> error_ = std::make_unique<int>(0);  // errno of the first failure
  Handle id_;
};

}  // namespace dtensor::checkpoint
