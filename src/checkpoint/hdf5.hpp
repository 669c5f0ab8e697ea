// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The HDF5 C API with ownership, checked return codes and the library's own types.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtensor/checkpoint/checkpoint.hpp"
#include "files.hpp"

namespace dtensor::checkpoint {

// An HDF5 identifier of any kind, released when it goes out of scope.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const noexcept { return id_; }
  // Gives the identifier away.
  hid_t release() noexcept { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// Keeps HDF5 from printing errors while it lives; they go into exceptions. To be declared before
// the handles of the same scope.
class QuietErrors {
 public:
  QuietErrors();
  ~QuietErrors();
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// Throws `IoError` about a call of HDF5 that failed, with the messages on HDF5's error stack.
[[noreturn]] void fail_call(const FileContext& file, const char* call);

// What an HDF5 call returned, if that is no error.
template <class Result>
Result check(const FileContext& file, const char* call, Result result) {
  if (result < 0) fail_call(file, call);
  return result;
}
inline Handle own(const FileContext& file, const char* call, hid_t id) {
  return Handle(check(file, call, id));
}

// What all files are opened and made with.
Handle access_properties(const FileContext& file);
// For reading.
Handle open_file(const FileContext& file);

// The type of an element in files, and in the memory of this machine.
Handle file_type(const FileContext& file, DType dtype);
Handle memory_type(const FileContext& file, DType dtype);

// The data space of a whole tensor, and of a box in it. A tensor without dimensions has one
// element.
Handle make_space(const FileContext& file, const Shape& shape);
Handle make_space(const FileContext& file, const Shape& shape, const Chunk& box);
// Extents of a dataset.
std::vector<std::int64_t> extents_of(const FileContext& file, hid_t dataset);

// A property list that makes the groups in the path of a new dataset.
Handle make_parent_groups(const FileContext& file);

// Small lists and texts.
void write_attribute(const FileContext& file, hid_t object, const std::string& name,
                     const Attribute& value);
void write_attribute(const FileContext& file, hid_t object, const std::string& name,
                     const std::vector<std::int64_t>& values);
// Empty when it is no scalar integer, float or text.
std::optional<Attribute> read_attribute(const FileContext& file, hid_t object,
                                        const std::string& name);
// Throws `IoError` when it is missing or of another type.
template <class T>
T read_attribute_as(const FileContext& file, hid_t object, const std::string& name) {
  const auto value = read_attribute(file, object, name);
  if (!value || !std::holds_alternative<T>(*value)) {
    file.fail("an attribute '" + name + "' of another type");
  }
  return std::get<T>(*value);
}
std::vector<std::int64_t> read_attribute_list(const FileContext& file, hid_t object,
                                              const std::string& name);
std::vector<std::string> attribute_names(const FileContext& file, hid_t object);
// The paths of all datasets in a group, relative to it.
std::vector<std::string> dataset_names(const FileContext& file, hid_t group);

}  // namespace dtensor::checkpoint
