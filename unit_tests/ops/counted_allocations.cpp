// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts all allocations of the program. A file of its own, so that no compiler pairs an inlined
// half of these with the standard library's other half.
#include <cstdint>
#include <cstdlib>
#include <new>

std::int64_t allocations = 0;

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
