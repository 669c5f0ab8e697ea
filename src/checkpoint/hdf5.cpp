// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "hdf5.hpp"

#include <fmt/format.h>

namespace dtensor::checkpoint {

namespace {

std::vector<hsize_t> to_hsize(const Extents& extents) { return {extents.begin(), extents.end()}; }

Handle make_type(const FileContext& file, DType dtype, H5T_order_t order) {
  const auto number = [&](hid_t standard) {
    Handle type = own(file, "H5Tcopy", H5Tcopy(standard));
    check(file, "H5Tset_order", H5Tset_order(type, order));
    return type;
  };
  // A 16-bit float whose low `mantissa` bits are the mantissa, below an exponent.
  const auto half = [&](std::size_t mantissa, std::size_t bias) {
    Handle type = own(file, "H5Tcopy", H5Tcopy(H5T_IEEE_F32LE));
    check(file, "H5Tset_fields", H5Tset_fields(type, 15, mantissa, 15 - mantissa, 0, mantissa));
    check(file, "H5Tset_size", H5Tset_size(type, 2));
    check(file, "H5Tset_ebias", H5Tset_ebias(type, bias));
    check(file, "H5Tset_order", H5Tset_order(type, order));
    return type;
  };
  const auto complex = [&](hid_t standard) {
    const Handle real = number(standard);
    const std::size_t size = H5Tget_size(real);
    Handle type = own(file, "H5Tcreate", H5Tcreate(H5T_COMPOUND, 2 * size));
    check(file, "H5Tinsert", H5Tinsert(type, "r", 0, real));
    check(file, "H5Tinsert", H5Tinsert(type, "i", size, real));
    return type;
  };
  switch (dtype) {
    case DType::float64:
      return number(H5T_IEEE_F64LE);
    case DType::float32:
      return number(H5T_IEEE_F32LE);
    case DType::float16:
      return half(10, 15);
    case DType::bfloat16:
      return half(7, 127);
    case DType::complex128:
      return complex(H5T_IEEE_F64LE);
    case DType::complex64:
      return complex(H5T_IEEE_F32LE);
    case DType::int64:
      return number(H5T_STD_I64LE);
    case DType::int32:
      return number(H5T_STD_I32LE);
    case DType::int16:
      return number(H5T_STD_I16LE);
    case DType::int8:
      return number(H5T_STD_I8LE);
    case DType::uint8:
      return number(H5T_STD_U8LE);
    case DType::boolean:
      break;
  }
  Handle type = own(file, "H5Tenum_create", H5Tenum_create(number(H5T_STD_I8LE)));
  const std::int8_t no = 0, yes = 1;
  check(file, "H5Tenum_insert", H5Tenum_insert(type, "FALSE", &no));
  check(file, "H5Tenum_insert", H5Tenum_insert(type, "TRUE", &yes));
  return type;
}

Handle text_type(const FileContext& file) {
  Handle type = own(file, "H5Tcopy", H5Tcopy(H5T_C_S1));
  check(file, "H5Tset_size", H5Tset_size(type, H5T_VARIABLE));
  check(file, "H5Tset_cset", H5Tset_cset(type, H5T_CSET_UTF8));
  return type;
}

void write_attribute(const FileContext& file, hid_t object, const std::string& name, hid_t type,
                     hid_t memory_type, hid_t space, const void* data) {
  const Handle attribute = own(
      file, "H5Acreate2", H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (data) check(file, "H5Awrite", H5Awrite(attribute, memory_type, data));
}

std::string read_text(const FileContext& file, hid_t attribute, hid_t type, hid_t space) {
  if (check(file, "H5Tis_variable_str", H5Tis_variable_str(type)) > 0) {
    char* text = nullptr;
    check(file, "H5Aread", H5Aread(attribute, type, &text));
    const std::string result = text ? text : "";
#if H5_VERSION_GE(1, 12, 0)
    check(file, "H5Treclaim", H5Treclaim(type, space, H5P_DEFAULT, &text));
#else
    check(file, "H5Dvlen_reclaim", H5Dvlen_reclaim(type, space, H5P_DEFAULT, &text));
#endif
    return result;
  }
  std::string result(H5Tget_size(type), '\0');
  check(file, "H5Aread", H5Aread(attribute, type, result.data()));
  return result.substr(0, result.find('\0'));
}

}  // namespace

QuietErrors::QuietErrors() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
QuietErrors::~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

void fail_call(const FileContext& file, const char* call) {
  std::string messages;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
        auto& text = *static_cast<std::string*>(data);
        if (error->desc && *error->desc)
          text += (text.empty() ? "" : "; ") + std::string(error->desc);
        return 0;
      },
      &messages);
  file.fail(fmt::format("{} failed ({})", call, messages));
}

Handle access_properties(const FileContext& file) {
  Handle properties = own(file, "H5Pcreate", H5Pcreate(H5P_FILE_ACCESS));
  // The oldest format with virtual datasets, so that old and new programs can read it.
  check(file, "H5Pset_libver_bounds",
        H5Pset_libver_bounds(properties, H5F_LIBVER_V110, H5F_LIBVER_V110));
#if H5_VERSION_GE(1, 10, 7)
  // Files are written under a name of their own, so locks would only fail where there are none.
  check(file, "H5Pset_file_locking", H5Pset_file_locking(properties, false, true));
#endif
  return properties;
}

Handle open_file(const FileContext& file) {
  return own(file, "H5Fopen", H5Fopen(file.path.c_str(), H5F_ACC_RDONLY, access_properties(file)));
}

Handle file_type(const FileContext& file, DType dtype) {
  return make_type(file, dtype, H5T_ORDER_LE);
}
Handle memory_type(const FileContext& file, DType dtype) {
  return make_type(file, dtype, H5Tget_order(H5T_NATIVE_INT));
}

Handle make_space(const FileContext& file, const Shape& shape) {
  if (shape.empty()) return own(file, "H5Screate", H5Screate(H5S_SCALAR));
  return own(file, "H5Screate_simple",
             H5Screate_simple(shape.size(), to_hsize(shape).data(), nullptr));
}

Handle make_space(const FileContext& file, const Shape& shape, const Chunk& box) {
  Handle space = make_space(file, shape);
  if (shape.empty()) return space;
  check(file, "H5Sselect_hyperslab",
        H5Sselect_hyperslab(space, H5S_SELECT_SET, to_hsize(box.offset).data(), nullptr,
                            to_hsize(box.shape).data(), nullptr));
  return space;
}

std::vector<std::int64_t> extents_of(const FileContext& file, hid_t dataset) {
  const Handle space = own(file, "H5Dget_space", H5Dget_space(dataset));
  const int rank = check(file, "H5Sget_simple_extent_ndims", H5Sget_simple_extent_ndims(space));
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  check(file, "H5Sget_simple_extent_dims",
        H5Sget_simple_extent_dims(space, extents.data(), nullptr));
  return {extents.begin(), extents.end()};
}

Handle make_parent_groups(const FileContext& file) {
  Handle properties = own(file, "H5Pcreate", H5Pcreate(H5P_LINK_CREATE));
  check(file, "H5Pset_create_intermediate_group", H5Pset_create_intermediate_group(properties, 1));
  check(file, "H5Pset_char_encoding", H5Pset_char_encoding(properties, H5T_CSET_UTF8));
  return properties;
}

void write_attribute(const FileContext& file, hid_t object, const std::string& name,
                     const Attribute& value) {
  const Handle space = own(file, "H5Screate", H5Screate(H5S_SCALAR));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    write_attribute(file, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, space, integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    write_attribute(file, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, space, real);
  } else {
    const char* const text = std::get<std::string>(value).c_str();
    const Handle type = text_type(file);
    write_attribute(file, object, name, type, type, space, &text);
  }
}

void write_attribute(const FileContext& file, hid_t object, const std::string& name,
                     const std::vector<std::int64_t>& values) {
  const Handle space = make_space(file, Shape{static_cast<std::int64_t>(values.size())});
  write_attribute(file, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, space,
                  values.empty() ? nullptr : values.data());
}

std::optional<Attribute> read_attribute(const FileContext& file, hid_t object,
                                        const std::string& name) {
  const Handle attribute = own(file, "H5Aopen", H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const Handle type = own(file, "H5Aget_type", H5Aget_type(attribute));
  const Handle space = own(file, "H5Aget_space", H5Aget_space(attribute));
  if (H5Sget_simple_extent_type(space) != H5S_SCALAR) return std::nullopt;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      std::int64_t value = 0;
      check(file, "H5Aread", H5Aread(attribute, H5T_NATIVE_INT64, &value));
      return value;
    }
    case H5T_FLOAT: {
      double value = 0;
      check(file, "H5Aread", H5Aread(attribute, H5T_NATIVE_DOUBLE, &value));
      return value;
    }
    case H5T_STRING:
      return read_text(file, attribute, type, space);
    default:
      return std::nullopt;
  }
}

std::vector<std::int64_t> read_attribute_list(const FileContext& file, hid_t object,
                                              const std::string& name) {
  const Handle attribute = own(file, "H5Aopen", H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const Handle space = own(file, "H5Aget_space", H5Aget_space(attribute));
  const auto count =
      check(file, "H5Sget_simple_extent_npoints", H5Sget_simple_extent_npoints(space));
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  if (count > 0) check(file, "H5Aread", H5Aread(attribute, H5T_NATIVE_INT64, values.data()));
  return values;
}

std::vector<std::string> attribute_names(const FileContext& file, hid_t object) {
  std::vector<std::string> names;
  check(file, "H5Aiterate2",
        H5Aiterate2(
            object, H5_INDEX_NAME, H5_ITER_INC, nullptr,
            [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
              static_cast<std::vector<std::string>*>(data)->emplace_back(name);
              return 0;
            },
            &names));
  return names;
}

std::vector<std::string> dataset_names(const FileContext& file, hid_t group) {
  std::vector<std::string> names;
  check(file, "H5Lvisit",
        H5Lvisit(
            group, H5_INDEX_NAME, H5_ITER_INC,
            [](hid_t parent, const char* name, const H5L_info_t*, void* data) -> herr_t {
              const Handle object(H5Oopen(parent, name, H5P_DEFAULT));
              if (object < 0) return -1;
              if (H5Iget_type(object) == H5I_DATASET) {
                static_cast<std::vector<std::string>*>(data)->emplace_back(name);
              }
              return 0;
            },
            &names));
  return names;
}

}  // namespace dtensor::checkpoint
