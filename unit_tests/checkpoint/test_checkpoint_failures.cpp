// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hdf5.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "checkpoint_test.hpp"

namespace dtensor::testing {
namespace {

// Beside the files, keeps what is written to stderr: a failure is an exception and nothing else.
class CheckpointFailure : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    ::testing::internal::CaptureStderr();
  }
  void TearDown() override {
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    CheckpointTest::TearDown();
  }

  // That every rank throws the same `E`, with these words in it.
  template <class E>
  static void expect_error(const std::function<void()>& f, const std::vector<std::string>& words) {
    std::string text;
    try {
      f();
      ADD_FAILURE() << "nothing thrown; expected an error with '" << words.at(0) << "'";
    } catch (const E& e) {
      text = e.what();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "another exception: " << e.what();
    }
    for (const auto& word : words)
      EXPECT_NE(text.find(word), std::string::npos) << word << ": " << text;
    auto hash = std::hash<std::string>()(text);
    std::vector<std::size_t> hashes(static_cast<std::size_t>(Runtime::size()));
    MPI_Allgather(&hash, sizeof hash, MPI_BYTE, hashes.data(), sizeof hash, MPI_BYTE,
                  MPI_COMM_WORLD);
    EXPECT_EQ(hashes, std::vector<std::size_t>(hashes.size(), hash)) << text;
  }

  // Every way to read fails alike.
  void expect_unreadable(const std::string& directory, const std::vector<std::string>& words) {
    const DTensor x = zeros({12, 3}, world(), {Shard(0)});
    expect_error<IoError>([&] { checkpoint::load(directory, "x", world(), {Shard(0)}); }, words);
    expect_error<IoError>([&] { checkpoint::load_into(directory, {{"x", x}}); }, words);
    expect_error<IoError>([&] { checkpoint::inspect(directory); }, words);
    expect_error<IoError>([&] { checkpoint::attributes(directory); }, words);
  }

  static bool last_rank() { return Runtime::rank() == Runtime::size() - 1; }

  // One with 'x' on all ranks and 'group/y' replicated.
  std::string saved() {
    const std::string directory = path("saved");
    checkpoint::save(directory, {{"x", make({12, 3}, DType::float64, world(), {Shard(0)})},
                                 {"group/y", make({2}, DType::int32, world(), {Replicate()})}});
    return directory;
  }
  // That `saved` is as it was, with nothing beside it.
  void expect_intact() {
    EXPECT_TRUE(holds_elements(checkpoint::load(path("saved"), "x", world(), {Replicate()})));
    EXPECT_EQ(entries(), std::vector<std::string>{"saved"});
    barrier();
  }
};

TEST_F(CheckpointFailure, NothingToRead) {
  expect_unreadable(path("none"), {path("none"), "no such directory"});
  on_rank_0([&] {
    std::ofstream(path("file")) << "text";
    fs::create_directory(path("empty"));
    fs::create_directory(path("other"));
    std::ofstream(path("other") + "/index.h5") << "not an HDF5 file";
  });
  expect_unreadable(path("file"), {path("file"), "not a directory"});
  expect_unreadable(path("empty"), {"index.h5", "no such file"});
  expect_unreadable(path("other"), {"index.h5", "file signature not found"});
  expect_unreadable("", {"no such directory"});
}

TEST_F(CheckpointFailure, TruncatedIndex) {
  const std::string index = saved() + "/index.h5";
  const auto size = fs::file_size(index);
  for (const std::uintmax_t left : {size - 1, size / 2, std::uintmax_t{0}}) {
    on_rank_0([&] { fs::resize_file(index, left); });
    expect_unreadable(path("saved"), {"index.h5"});
  }
}

TEST_F(CheckpointFailure, AnotherVersionOrFormat) {
  const std::string directory = saved();
  const auto in_group = [&](const std::function<void(hid_t)>& change) {
    on_rank_0([&] {
      const hid_t file = H5Fopen((directory + "/index.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
      const hid_t group = H5Gopen2(file, "__dtensor__", H5P_DEFAULT);
      ASSERT_GE(group, 0);
      change(group);
      H5Gclose(group);
      ASSERT_GE(H5Fclose(file), 0);
    });
  };
  in_group([](hid_t group) {
    const std::int64_t version = 2;
    const hid_t attribute = H5Aopen(group, "version", H5P_DEFAULT);
    ASSERT_GE(H5Awrite(attribute, H5T_NATIVE_INT64, &version), 0);
    H5Aclose(attribute);
  });
  expect_unreadable(directory, {"version 2", "version 1"});
  in_group([](hid_t group) { ASSERT_GE(H5Adelete(group, "version"), 0); });
  expect_unreadable(directory, {"index.h5", "version"});
  on_rank_0([&] {
    fs::remove(directory + "/index.h5");
    H5Fclose(H5Fcreate((directory + "/index.h5").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
  });
  expect_unreadable(directory, {"no group '__dtensor__'"});
}

TEST_F(CheckpointFailure, ATableThatDoesNotAddUp) {
  const std::string directory = saved();
  on_rank_0([&] {
    const hid_t file = H5Fopen((directory + "/index.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t table = H5Dopen2(file, "__dtensor__/chunks/x", H5P_DEFAULT);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(6 * Runtime::size()));
    ASSERT_GE(H5Dread(table, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), 0);
    ++rows[2];  // the first row offset of the first chunk
    --rows[4];
    ASSERT_GE(H5Dwrite(table, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data()), 0);
    H5Dclose(table);
    ASSERT_GE(H5Fclose(file), 0);
  });
  expect_error<IoError>([&] { checkpoint::load(directory, "x", world(), {Shard(0)}); },
                        {"'x'", "elements"});
}

TEST_F(CheckpointFailure, MissingOrDamagedRankFile) {
  const std::string directory = saved();
  const std::string last = "rank_0000" + std::to_string(Runtime::size() - 1) + ".h5";
  const std::string file = directory + "/" + last;
  const DTensor x = zeros({12, 3}, world(), {Shard(0)});
  const auto expect_io_error = [&](const std::vector<std::string>& words) {
    expect_error<IoError>([&] { checkpoint::load(directory, "x", world(), {Shard(0)}); }, words);
    expect_error<IoError>([&] { checkpoint::load_into(directory, {{"x", x}}); }, words);
  };
  on_rank_0([&] { fs::resize_file(file, fs::file_size(file) - 8); });
  expect_io_error({last, "truncated file"});
  on_rank_0([&] { fs::remove(file); });
  expect_io_error({last, "No such file"});
  // A sound file with another dataset in the place.
  on_rank_0([&] {
    const hid_t h5 = H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(h5, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t extents[] = {12, 4};
    const hid_t space = H5Screate_simple(2, extents, nullptr);
    H5Dclose(
        H5Dcreate2(group, "0", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Gclose(group);
    ASSERT_GE(H5Fclose(h5), 0);
  });
  expect_io_error({last, "/x/0", "float64"});
}

TEST_F(CheckpointFailure, WhatDoesNotFit) {
  const std::string directory = saved();
  const DeviceMesh mesh = world();
  expect_error<ValueError>([&] { checkpoint::load(directory, "z", mesh, {Shard(0)}); },
                           {"'z'", "'group/y'", "'x'"});
  expect_error<ValueError>([&] { checkpoint::load(directory, "group", mesh, {Shard(0)}); },
                           {"'group'", "'group/y'"});
  expect_error<LayoutError>([&] { checkpoint::load(directory, "x", mesh, {Partial()}); }, {"[P]"});
  expect_error<LayoutError>(
      [&] {
        checkpoint::load(directory, "x", mesh, {Shard(0), Shard(1)});
      },
      {"2 placements"});
  expect_error<IndexError>([&] { checkpoint::load(directory, "x", mesh, {Shard(2)}); }, {"2"});
  const auto into = [&](const char* name, const DTensor& tensor) {
    return [=] { checkpoint::load_into(directory, {{name, tensor}}); };
  };
  expect_error<TypeError>(into("x", zeros({12, 3}, mesh, {Shard(0)}, DType::float32)),
                          {"'x'", "float32", "float64"});
  expect_error<ValueError>(into("x", zeros({3, 12}, mesh, {Shard(0)})), {"(3, 12)", "(12, 3)"});
  expect_error<ValueError>(into("z", zeros({12, 3}, mesh, {Shard(0)})), {"'z'", "'x'"});
  expect_error<LayoutError>(
      into("x", from_local(whole({12, 3}, DType::float64), mesh, {Partial()})), {"[P]"});
  expect_intact();
}

TEST_F(CheckpointFailure, WhatCannotBeSaved) {
  const DeviceMesh mesh = world();
  const DTensor x = zeros({4}, mesh, {Shard(0)});
  for (const std::string name :
       {"", "/x", "x/", "a//b", ".", "a/./b", "__dtensor__", "__dtensor__/x"}) {
    expect_error<ValueError>([&] { checkpoint::save(path("c"), {{name, x}}); }, {"'" + name + "'"});
  }
  expect_error<ValueError>(
      [&] {
        checkpoint::save(path("c"), {{std::string("a\0b", 3), x}});
      },
      {"a\\0b"});
  expect_error<ValueError>(
      [&] {
        checkpoint::save(path("c"), {{"a", x}, {"a-", x}, {"a/b/c", x}});
      },
      {"'a'", "'a/b/c'"});
  expect_error<ValueError>([&] { checkpoint::save(path("c"), {{"x", x}}, {{"", 1}}); }, {"''"});
  expect_error<ValueError>(
      [&] {
        checkpoint::save(path("c"), {{"x", x}}, {{"t", std::string("a\0b", 3)}});
      },
      {"'t'"});
  const DTensor y = zeros({4}, DeviceMesh(Shape{1, Runtime::size()}), {Shard(0), Replicate()});
  expect_error<ValueError>(
      [&] {
        checkpoint::save(path("c"), {{"x", x}, {"y", y}});
      },
      {"'y'", "one mesh"});
  expect_error<ValueError>(
      [&] {
        checkpoint::load_into(path("c"), {{"x", x}, {"y", y}});
      },
      {"'y'"});
  expect_error<ValueError>([&] { checkpoint::save(path("c"), {}); }, {"no tensors"});
  expect_error<StateError>(
      [&] {
        checkpoint::save(path("c"), {{"a", DTensor()}, {"x", x}});
      },
      {"'a'"});
  EXPECT_TRUE(entries().empty());
}

TEST_F(CheckpointFailure, RanksThatDiffer) {
  if (Runtime::size() == 1) return;
  const std::string directory = saved();
  const DeviceMesh mesh = world();
  const bool odd = last_rank();
  const DTensor x = zeros({12, 3}, mesh, {Shard(0)});
  const DTensor other = zeros({12, 3}, mesh, {odd ? Placement(Shard(1)) : Placement(Shard(0))});
  const auto save = [&](const std::string& name, const Tensors& tensors,
                        const checkpoint::Attributes& attributes = {}) {
    return [=, this] { checkpoint::save(path(name), tensors, attributes); };
  };
  expect_error<MismatchError>(save(odd ? "a" : "b", {{"x", x}}), {"/a'", "/b'"});
  expect_error<MismatchError>(save("saved", {{odd ? "a" : "b", x}}), {"'a'", "'b'"});
  expect_error<MismatchError>(save("saved", {{"x", other}}), {"[S(0)]", "[S(1)]"});
  expect_error<MismatchError>(save("saved", {{"x", x}}, {{"i", odd ? 1 : 2}}), {"i=1", "i=2"});
  expect_error<MismatchError>(save("saved", odd ? Tensors{{"x", x}} : Tensors{{"x", x}, {"y", x}}),
                              {"'y'"});
  expect_error<ValueError>(save("saved", {{odd ? "/" : "x", x}}), {"'/'"});

  const Placement p = odd ? Placement(Shard(1)) : Placement(Shard(0));
  expect_error<MismatchError>([&] { checkpoint::load(directory, "x", mesh, {p}); },
                              {"[S(0)]", "[S(1)]"});
  expect_error<MismatchError>(
      [&] { checkpoint::load(directory, odd ? "x" : "group/y", mesh, {Shard(0)}); },
      {"'x'", "'group/y'"});
  expect_error<IoError>(
      [&] { checkpoint::load(odd ? path("none") : directory, "x", mesh, {Shard(0)}); }, {"none"});
  expect_error<MismatchError>(
      [&] {
        checkpoint::load_into(directory, {{"x", other}});
      },
      {"[S(0)]", "[S(1)]"});
  expect_intact();
}

// As when a path is local to each machine.
TEST_F(CheckpointFailure, RanksThatSeeDifferentFiles) {
  if (Runtime::size() == 1) return;
  const DeviceMesh mesh = world();
  const DTensor x = make({12, 3}, DType::float64, mesh, {Shard(0)});
  checkpoint::save(path("a/saved"), {{"x", x}});
  checkpoint::save(path("b/saved"), {{"x", make({12, 3}, DType::float64, mesh, {Shard(1)})}});
  barrier();
  const fs::path before = fs::current_path();
  fs::current_path(path(last_rank() ? "b" : "a"));
  expect_error<MismatchError>([&] { checkpoint::load("saved", "x", mesh, {Shard(0)}); },
                              {"'saved'", "contents"});
  expect_error<MismatchError>([&] { checkpoint::load_into("saved", {{"x", x}}); }, {"'saved'"});
  fs::current_path(before);
}

TEST_F(CheckpointFailure, PlacesThatCannotBeWritten) {
  const Tensors tensors{{"x", zeros({4}, world(), {Shard(0)})}};
  on_rank_0([&] {
    std::ofstream(path("file")) << "text";
    fs::create_directory(path("home"));
    std::ofstream(path("home") + "/notes.txt") << "text";
    fs::create_directories(path("runs") + "/index.h5");
  });
  const auto save = [&](const std::string& directory) {
    return [=] { checkpoint::save(directory, tensors); };
  };
  expect_error<IoError>(save(path("file")), {path("file"), "not a directory"});
  expect_error<IoError>(save(path("file") + "/c"), {path("file") + "/c"});
  expect_error<IoError>(save("/proc/dtensor/c"), {"/proc/dtensor/c"});
  expect_error<IoError>(save(""), {"''"});
  expect_error<IoError>(save("/"), {"'/'"});
  // Somebody's data is never replaced.
  expect_error<IoError>(save(path("home")), {path("home"), "'notes.txt'"});
  expect_error<IoError>(save(path("runs")), {path("runs"), "'index.h5'"});
  barrier();
  EXPECT_EQ(fs::file_size(path("home") + "/notes.txt"), 4u);
  EXPECT_EQ(entries().size(), 3u);
}

// One rank may write only 64 KiB, which is what a full disk looks like to it.
TEST_F(CheckpointFailure, DiskFullOnOneRank) {
  saved();
  const DTensor large = zeros({Runtime::size(), 100000}, world(), {Shard(0)});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  if (last_rank()) {
    rlimit limit = before;
    limit.rlim_cur = 64 << 10;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  expect_error<IoError>(
      [&] {
        checkpoint::save(path("saved"), {{"x", large}});
      },
      {"rank_0000" + std::to_string(Runtime::size() - 1), "File too large"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  barrier();
  expect_intact();
  // And it works again.
  checkpoint::save(path("saved"), {{"y", large}});
  EXPECT_EQ(checkpoint::inspect(path("saved")).at(0).name, "y");
}

}  // namespace
}  // namespace dtensor::testing
