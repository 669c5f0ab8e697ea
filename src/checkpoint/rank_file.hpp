// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The file with the chunks that one rank wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtensor/redistribute/transfer.hpp"
#include "hdf5.hpp"

namespace dtensor::checkpoint {

// What of a chunk a rank holds: positions in the chunk and in the local tensor.
// \param held  the indices that the rank holds, per tensor dimension
Transfer overlap(const Chunk& chunk, const std::vector<IndexSet>& held);
// The indices that a coordinate holds, per tensor dimension.
std::vector<IndexSet> held_indices(const Layout& layout, const Extents& coordinate);

// Makes the dataset of a chunk and fills it from the local tensor.
void write_chunk(const FileContext& file, hid_t h5, const std::string& dataset, const Chunk& chunk,
                 const Transfer& transfer, const Tensor& local);
// Fills the local tensor from the dataset of a chunk. Throws `IoError` when that is not the chunk.
void read_chunk(const FileContext& file, hid_t h5, const std::string& dataset, const Chunk& chunk,
                const Transfer& transfer, const Tensor& local);

}  // namespace dtensor::checkpoint
