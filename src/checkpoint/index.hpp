// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The file that says what a checkpoint holds and where.
#pragma once

#include <string>
#include <vector>

#include "hdf5.hpp"

namespace dtensor::checkpoint {

// The group that everything but the tensors is in; no tensor has this name.
inline constexpr const char* reserved_name = "__dtensor__";

// The dataset of a chunk in its rank file.
std::string chunk_dataset(const std::string& tensor, std::int64_t number);

void write_index(FileContext context, const std::vector<TensorInfo>& tensors,
                 const Attributes& attributes);

// Throws `IoError` when the checkpoint is missing, damaged or of another version.
class IndexReader {
 public:
  IndexReader(const char* function, const std::string& directory);

  // Of all tensors, sorted.
  const std::vector<std::string>& names() const noexcept { return names_; }
  // Throws `ValueError` for an unknown name.
  TensorInfo tensor(const std::string& name) const;
  Attributes attributes() const;

 private:
  QuietErrors quiet_;
  FileContext context_;
  Handle file_, chunks_;
  std::vector<std::string> names_;
};

}  // namespace dtensor::checkpoint
