// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "write_driver.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace dtensor::checkpoint {

namespace {

constexpr haddr_t max_address = (haddr_t{1} << 63) - 1;

// An open file, as HDF5 sees it.
struct DriverFile {
  H5FD_t base;  // first, as HDF5 knows only this
  int descriptor;
  int* error;
  haddr_t end_of_addresses;
  haddr_t end_of_file;
};

DriverFile& driver_file(H5FD_t* file) { return *reinterpret_cast<DriverFile*>(file); }
const DriverFile& driver_file(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile*>(file);
}

void remember(int& error, int code) {
  if (error == 0) error = code;
}

// Calls `transfer(done bytes, remaining bytes)` until all of `size` is done. Returns the number of
// bytes that were, with the error remembered if there was one.
template <class F>
std::size_t complete(DriverFile& file, std::size_t size, F&& transfer) {
  std::size_t done = 0;
  while (done < size) {
    // Some systems refuse more than 2 GiB at once.
    const ssize_t count = transfer(done, std::min<std::size_t>(size - done, std::size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) remember(*file.error, errno);
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

H5FD_t* open_callback(const char* name, unsigned, hid_t properties, haddr_t) {
  auto* const error = *static_cast<int* const*>(H5Pget_driver_info(properties));
  const int descriptor = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    *error = errno;
    return nullptr;
  }
  return &(new DriverFile{{}, descriptor, error, 0, 0})->base;
}

herr_t close_callback(H5FD_t* base) {
  DriverFile& file = driver_file(base);
  if (::fsync(file.descriptor) != 0) remember(*file.error, errno);
  if (::close(file.descriptor) != 0) remember(*file.error, errno);
  delete &file;
  return 0;
}

herr_t query_callback(const H5FD_t*, unsigned long* flags) {
  if (flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  }
  return 0;
}

haddr_t get_eoa_callback(const H5FD_t* base, H5FD_mem_t) {
  return driver_file(base).end_of_addresses;
}
herr_t set_eoa_callback(H5FD_t* base, H5FD_mem_t, haddr_t address) {
  driver_file(base).end_of_addresses = address;
  return 0;
}
haddr_t get_eof_callback(const H5FD_t* base, H5FD_mem_t) { return driver_file(base).end_of_file; }

herr_t read_callback(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size,
                     void* data) {
  DriverFile& file = driver_file(base);
  auto* const bytes = static_cast<char*>(data);
  const std::size_t done = complete(file, size, [&](std::size_t begin, std::size_t count) {
    return ::pread(file.descriptor, bytes + begin, count, static_cast<off_t>(address + begin));
  });
  // Nothing lies behind the end of a file, or where a write failed.
  std::memset(bytes + done, 0, size - done);
  return 0;
}

herr_t write_callback(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size,
                      const void* data) {
  DriverFile& file = driver_file(base);
  const auto* const bytes = static_cast<const char*>(data);
  const std::size_t done = complete(file, size, [&](std::size_t begin, std::size_t count) {
    return ::pwrite(file.descriptor, bytes + begin, count, static_cast<off_t>(address + begin));
  });
  if (done < size) remember(*file.error, EIO);
  file.end_of_file = std::max(file.end_of_file, address + size);
  return 0;
}

herr_t truncate_callback(H5FD_t* base, hid_t, hbool_t) {
  DriverFile& file = driver_file(base);
  if (file.end_of_file != file.end_of_addresses) {
    if (::ftruncate(file.descriptor, static_cast<off_t>(file.end_of_addresses)) != 0) {
      remember(*file.error, errno);
    }
    file.end_of_file = file.end_of_addresses;
  }
  return 0;
}

Handle register_driver(const FileContext& file) {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(512);  // the first one that HDF5 does not reserve
#endif
  driver.name = "dtensor";
  driver.maxaddr = max_address;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(int*);
  driver.open = open_callback;
  driver.close = close_callback;
  driver.query = query_callback;
  driver.get_eoa = get_eoa_callback;
  driver.set_eoa = set_eoa_callback;
  driver.get_eof = get_eof_callback;
  driver.read = read_callback;
  driver.write = write_callback;
  driver.truncate = truncate_callback;
  // Metadata and elements come from two free lists, as in the files of HDF5's own drivers.
  constexpr H5FD_mem_t lists[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(lists), std::end(lists), driver.fl_map);
  return own(file, "H5FDregister", H5FDregister(&driver));
}

}  // namespace

NewFile::NewFile(FileContext context) : context_(std::move(context)) {
  const Handle driver = register_driver(context_);
  const Handle properties = access_properties(context_);
  int* const error = error_.get();
  check(context_, "H5Pset_driver", H5Pset_driver(properties, driver, &error));
  id_ = Handle(H5Fcreate(context_.path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, properties));
  check_written();
  check(context_, "H5Fcreate", static_cast<hid_t>(id_));
}

void NewFile::check_written() const {
  if (*error_ != 0) context_.fail(std::strerror(*error_));
}

void NewFile::close() {
  check(context_, "H5Fclose", H5Fclose(id_.release()));
  check_written();
}

}  // namespace dtensor::checkpoint
