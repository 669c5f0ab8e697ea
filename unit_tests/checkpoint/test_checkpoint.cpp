// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "checkpoint_test.hpp"
#include "dtensor/comm/events.hpp"

namespace dtensor::testing {
namespace {

using checkpoint::Attributes;
using checkpoint::TensorInfo;

constexpr DType all_dtypes[] = {DType::float64,  DType::float32,    DType::float16,
                                DType::bfloat16, DType::complex128, DType::complex64,
                                DType::int64,    DType::int32,      DType::int16,
                                DType::int8,     DType::uint8,      DType::boolean};

// Meshes of all ranks, of some in another order, and of one, that have these dimensions.
std::vector<DeviceMesh> meshes() {
  const int size = Runtime::size();
  std::vector<DeviceMesh> result{DeviceMesh(Shape{size})};
  result.push_back(size % 2 == 0 ? DeviceMesh(Shape{size / 2, 2}) : DeviceMesh(Shape{1, size}));
  std::vector<int> some;
  for (int r = size - 1; r >= std::min(1, size - 1); --r) some.push_back(r);
  result.push_back(DeviceMesh::from_ranks(some, Shape{static_cast<std::int64_t>(some.size())}));
  result.push_back(DeviceMesh::from_ranks({size / 2}, Shape{1, 1}));
  return result;
}

// Layouts of a tensor with dimensions 0, 1 and 2.
std::vector<Placements> layouts(const DeviceMesh& mesh, const Shape& shape) {
  const auto uneven = [&](int dim) {
    // All but one element on the last coordinate, nothing on the first when there are more.
    std::vector<std::int64_t> extents(static_cast<std::size_t>(mesh.size(mesh.dim() - 1)), 0);
    extents.back() = shape[dim];
    if (extents.size() > 1 && shape[dim] > 0) {
      --extents.back();
      extents[extents.size() / 2 - (extents.size() == 2 ? 1 : 0)] += 1;
    }
    return Shard(dim, extents);
  };
  if (mesh.dim() == 1) {
    return {{Replicate()}, {Shard(0)}, {Shard(2)}, {uneven(1)}, {StridedShard(0, 3)}};
  }
  return {{Replicate(), Replicate()}, {Shard(1), Replicate()}, {Replicate(), uneven(2)},
          {Shard(0), Shard(2)},       {Shard(0), Shard(0)},    {StridedShard(0, 2), Shard(0)}};
}

class Checkpoint : public CheckpointTest {};

TEST_F(Checkpoint, AnyLayoutIntoAnyOther) {
  const Shape shape{7, 5, 3};
  int number = 0;
  for (const DeviceMesh& from : meshes()) {
    Tensors tensors;
    for (const Placements& p : layouts(from, shape)) {
      tensors.emplace(to_string(p), make(shape, DType::int32, from, p));
    }
    const std::string directory = path(std::to_string(number++));
    checkpoint::save(directory, tensors);
    barrier();
    for (const DeviceMesh& to : meshes()) {
      for (const Placements& p : layouts(to, shape)) {
        const Tensors loaded =
            checkpoint::load(directory, to, [&](const TensorInfo&) { return p; });
        ASSERT_EQ(loaded.size(), tensors.size());
        for (const auto& [name, tensor] : loaded) {
          EXPECT_EQ(tensor.placements(), Layout(shape, to.grid(), p).placements());
          EXPECT_EQ(tensor.dtype(), DType::int32);
          EXPECT_TRUE(holds_elements(tensor)) << "saved as " << name << " on " << to_string(from);
        }
      }
    }
    barrier();
  }
}

TEST_F(Checkpoint, EveryScalarType) {
  const DeviceMesh mesh = world();
  Tensors tensors;
  std::map<std::string, Placements> placements;
  for (DType dtype : all_dtypes) {
    tensors.emplace(to_string(dtype), make({13, 11}, dtype, mesh, {Shard(0)}));
    placements.emplace(to_string(dtype), Placements{Shard(1)});
  }
  checkpoint::save(path("types"), tensors);
  const Tensors loaded = checkpoint::load(path("types"), mesh, placements);
  ASSERT_EQ(loaded.size(), 12u);
  for (DType dtype : all_dtypes) {
    EXPECT_EQ(loaded.at(to_string(dtype)).dtype(), dtype);
    EXPECT_TRUE(holds_elements(loaded.at(to_string(dtype))));
  }
}

TEST_F(Checkpoint, ExtremeShapes) {
  const DeviceMesh mesh = world();
  const std::map<std::string, Shape> shapes{
      {"scalar", {}},        {"one", {1}},       {"none", {0}},
      {"hollow", {5, 0, 3}}, {"long", {100003}}, {"eight", {1, 2, 1, 3, 1, 2, 1, 5}}};
  Tensors tensors;
  for (const auto& [name, shape] : shapes) {
    const Placement p = shape.empty() ? Placement(Replicate()) : Placement(Shard(0));
    tensors.emplace(name, make(shape, DType::float32, mesh, {p}));
  }
  checkpoint::save(path("c"), tensors);
  const Tensors loaded = checkpoint::load(path("c"), mesh, [](const TensorInfo& info) {
    return Placements{info.shape.empty() ? Placement(Replicate()) : Placement(Shard(-1))};
  });
  for (const auto& [name, shape] : shapes) {
    EXPECT_EQ(loaded.at(name).shape(), shape);
    EXPECT_TRUE(holds_elements(loaded.at(name))) << name;
  }
}

TEST_F(Checkpoint, PartialIsStoredAsItsLogicalValue) {
  const DeviceMesh mesh = meshes()[1];
  const auto ranks = static_cast<double>(mesh.size());
  const Tensor ones =
      Tensor::full({3, 5}, static_cast<double>(Runtime::rank() + 1), DType::float64);
  const DTensor sum = from_local(ones, mesh, {Partial(), Partial()});
  const DTensor highest = from_local(ones, mesh, {Partial(ReduceOp::max), Partial(ReduceOp::max)});
  const DTensor mean = from_local(ones.narrow(0, 0, 1).reshape({5}), mesh,
                                  {Partial(ReduceOp::avg), Partial(ReduceOp::avg)});
  const DTensor scalar =
      from_local(Tensor::full({}, 2, DType::int64), mesh, {Partial(), Partial()});
  const DTensor mixed =
      from_local(Tensor::full({2, 7}, 3, DType::int32), mesh, {Partial(), Shard(1)});
  checkpoint::save(
      path("c"),
      {{"sum", sum}, {"max", highest}, {"mean", mean}, {"scalar", scalar}, {"mixed", mixed}});
  EXPECT_TRUE(sum.layout().has_partial());
  const Placements replicated{Replicate(), Replicate()};
  const auto load = [&](const std::string& name) {
    return checkpoint::load(path("c"), name, mesh, replicated).to_local();
  };
  EXPECT_EQ(load("sum").to_vector<double>(), std::vector<double>(15, ranks * (ranks + 1) / 2));
  EXPECT_EQ(load("max").to_vector<double>(), std::vector<double>(15, ranks));
  EXPECT_EQ(load("mean").to_vector<double>(), std::vector<double>(5, (ranks + 1) / 2));
  EXPECT_EQ(load("scalar").item<std::int64_t>(), 2 * mesh.size());
  const auto mixed_values = load("mixed").to_vector<std::int32_t>();
  EXPECT_EQ(mixed_values, std::vector<std::int32_t>(static_cast<std::size_t>(14 * mesh.size(1)),
                                                    static_cast<std::int32_t>(3 * mesh.size(0))));
  for (const TensorInfo& info : checkpoint::inspect(path("c"))) {
    EXPECT_NE(info.placements.find('P'), std::string::npos) << info.name;
    // Reduced and written by parts, so that no rank holds the whole.
    if (info.name == "sum") {
      EXPECT_EQ(info.chunks.size(), std::min<std::size_t>(5, mesh.size()));
    }
  }
}

TEST_F(Checkpoint, PendingRedistributionIsWaitedFor) {
  const DeviceMesh mesh = world();
  const DTensor source = make({501, 7}, DType::float64, mesh, {Shard(0)});
  RedistributeOptions options;
  options.async_op = true;
  checkpoint::save(path("c"), {{"x", source.redistribute({Shard(1)}, options)}});
  EXPECT_TRUE(holds_elements(checkpoint::load(path("c"), "x", mesh, {Shard(0)})));

  const DTensor zero = zeros({501, 7}, mesh, {Shard(0)}, DType::float64);
  const DTensor pending = zero.redistribute({Shard(1)}, options);
  checkpoint::load_into(path("c"), {{"x", pending}});
  EXPECT_TRUE(holds_elements(pending));
}

TEST_F(Checkpoint, LoadIntoKeepsTheMemory) {
  const DeviceMesh mesh = world();
  const Shape shape{6, 10};
  checkpoint::save(path("c"), {{"x", make(shape, DType::int16, mesh, {Shard(0)})},
                               {"other", make(shape, DType::int8, mesh, {Shard(0)})}});
  const DTensor dense = zeros(shape, mesh, {Shard(1)}, DType::int16);
  const void* const memory = dense.to_local().data();
  checkpoint::load_into(path("c"), {{"x", dense}});
  EXPECT_EQ(dense.to_local().data(), memory);
  EXPECT_TRUE(holds_elements(dense));
}

TEST_F(Checkpoint, LocalTensorsThatAreNotDense) {
  const DeviceMesh mesh = world();
  const Shape shape{9, 10};
  // The local part is column-major, and the middle of a larger block.
  const auto strided = [&](const Placement& p) {
    const Shape local = make(shape, DType::int32, mesh, {p}).to_local().shape();
    const Tensor block = Tensor::full({local[1] + 2, local[0] + 3}, -1, DType::int32);
    return std::pair(block, block.narrow(0, 1, local[1]).narrow(1, 2, local[0]).transpose(0, 1));
  };
  const auto as_dtensor = [&](const Tensor& local, const Placement& p) {
    FromLocalOptions options;
    options.shape = shape;
    options.stride = Extents{1, 9};
    return from_local(local, mesh, {p}, options);
  };
  const auto [source_block, source] = strided(StridedShard(0, 2));
  source.copy_from(make(shape, DType::int32, mesh, {StridedShard(0, 2)}).to_local());
  const DTensor saved = as_dtensor(source, StridedShard(0, 2));
  ASSERT_EQ(saved.to_local().data(), source.data());
  checkpoint::save(path("c"), {{"x", saved}});
  EXPECT_TRUE(holds_elements(checkpoint::load(path("c"), "x", mesh, {Shard(1)})));

  const auto [block, local] = strided(Shard(1));
  const DTensor loaded = as_dtensor(local, Shard(1));
  checkpoint::load_into(path("c"), {{"x", loaded}});
  EXPECT_TRUE(holds_elements(loaded));
  // What lies around it is as it was.
  const auto values = block.to_vector<std::int32_t>();
  const auto untouched = block.numel() - local.numel();
  std::int64_t minus_ones = std::count(values.begin(), values.end(), -1);
  const auto own = local.to_vector<std::int32_t>();
  minus_ones -= std::count(own.begin(), own.end(), -1);
  EXPECT_EQ(minus_ones, untouched);
}

TEST_F(Checkpoint, NamesAndAttributes) {
  const DeviceMesh mesh = world();
  const std::vector<std::string> names{
      "a.b", "layer/0/weight", "layer/0/weight2", "layer/1/weight", "100% %b", "größe",
      "..",  "with space"};
  Tensors tensors;
  std::int64_t extent = 3;
  for (const auto& name : names)
    tensors.emplace(name, make({extent++}, DType::int64, mesh, {Shard(0)}));
  const std::string long_text(100000, 'x');
  const Attributes attributes{{"iteration", std::int64_t{-9007199254740993}},
                              {"time", 0.1},
                              {"text", "größe\n'\""},
                              {"empty", ""},
                              {"long", long_text},
                              {"int", 7}};
  checkpoint::save(path("c"), tensors, attributes);
  EXPECT_EQ(checkpoint::attributes(path("c")), attributes);
  std::vector<std::string> found;
  for (const TensorInfo& info : checkpoint::inspect(path("c"))) {
    found.push_back(info.name);
    EXPECT_EQ(info.dtype, DType::int64);
    EXPECT_EQ(info.shape, tensors.at(info.name).shape());
    EXPECT_EQ(info.placements, "[S(0)]");
  }
  auto sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(found, sorted);
  for (const auto& name : names) {
    EXPECT_TRUE(holds_elements(checkpoint::load(path("c"), name, mesh, {Replicate()}))) << name;
  }
  const Tensors two =
      checkpoint::load(path("c"), mesh, {{"..", {Shard(0)}}, {"a.b", {Replicate()}}});
  EXPECT_EQ(two.size(), 2u);
}

TEST_F(Checkpoint, ReplicasTakeTurns) {
  const DeviceMesh mesh = world();
  const auto size = static_cast<std::size_t>(mesh.size());
  Tensors tensors;
  for (std::size_t i = 0; i < 2 * size; ++i) {
    tensors.emplace(std::string(1, static_cast<char>('a' + i)),
                    make({4, 3}, DType::float64, mesh, {Replicate()}));
  }
  checkpoint::save(path("c"), tensors);
  std::vector<int> written(size);
  for (const TensorInfo& info : checkpoint::inspect(path("c"))) {
    ASSERT_EQ(info.chunks.size(), 1u);
    EXPECT_EQ(info.chunks[0].box, (Chunk{{0, 0}, {4, 3}}));
    ++written[static_cast<std::size_t>(info.chunks[0].rank)];
  }
  EXPECT_EQ(written, std::vector<int>(size, 2));
}

TEST_F(Checkpoint, EventsTellTheBytes) {
  struct Files : Observer {
    void on_event(const Event& event) override { bytes[event.operation] += event.bytes_of_files; }
    std::map<std::string, std::int64_t> bytes;
  } files;
  const DeviceMesh mesh = world();
  const Tensors tensors{{"sharded", make({7, 5}, DType::float64, mesh, {Shard(0)})},
                        {"replicated", make({3}, DType::int16, mesh, {Replicate()})}};
  add_observer(files);
  checkpoint::save(path("c"), tensors);
  checkpoint::load(path("c"), "sharded", mesh, {Shard(1)});
  checkpoint::load_into(path("c"), {{"replicated", tensors.at("replicated")}});
  remove_observer(files);
  // Written once, by whomever; read by those who hold it.
  std::int64_t written = files.bytes["checkpoint::save"], read = files.bytes["checkpoint::load"];
  MPI_Allreduce(MPI_IN_PLACE, &written, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &read, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_EQ(written, 7 * 5 * 8 + 3 * 2);
  EXPECT_EQ(read, 7 * 5 * 8);
  EXPECT_EQ(files.bytes["checkpoint::load_into"], 3 * 2);
}

TEST_F(Checkpoint, InspectTellsTheChunks) {
  const DeviceMesh mesh = world();
  checkpoint::save(path("c"), {{"x", make({7, 2}, DType::int8, mesh, {Shard(0)})}});
  const auto infos = checkpoint::inspect(path("c"));
  ASSERT_EQ(infos.size(), 1u);
  const std::int64_t step = (7 + mesh.size() - 1) / mesh.size();
  std::int64_t begin = 0;
  for (const auto& chunk : infos[0].chunks) {
    EXPECT_EQ(chunk.box.offset, (Extents{begin, 0}));
    EXPECT_EQ(chunk.box.shape, (Extents{std::min(step, 7 - begin), 2}));
    EXPECT_EQ(chunk.rank, begin / step);
    EXPECT_EQ(chunk.number, 0);
    begin += step;
  }
  EXPECT_GE(begin, 7);
}

TEST_F(Checkpoint, ANewerOneTakesThePlaceOfAnOlder) {
  const DeviceMesh mesh = world();
  // The old one has more tensors; none of it is left.
  checkpoint::save(path("c"),
                   {{"old", make({8}, DType::int8, mesh, {Shard(0)})},
                    {"x", zeros({3}, mesh, {Shard(0)}, DType::int32)}},
                   {{"old", 1}});
  checkpoint::save(path("c") + "/", {{"x", make({9}, DType::int32, mesh, {Shard(0)})}});
  EXPECT_TRUE(holds_elements(checkpoint::load(path("c"), "x", mesh, {Replicate()})));
  EXPECT_EQ(checkpoint::inspect(path("c")).size(), 1u);
  EXPECT_TRUE(checkpoint::attributes(path("c")).empty());
  EXPECT_EQ(entries(), std::vector<std::string>{"c"});
  barrier();

  // Through a symbolic link, and into directories that are not there yet.
  on_rank_0([&] { fs::create_directory_symlink("c", path("latest")); });
  checkpoint::save(path("latest"), {{"y", make({4}, DType::int32, mesh, {Shard(0)})}});
  EXPECT_EQ(checkpoint::inspect(path("c")).at(0).name, "y");
  EXPECT_TRUE(fs::is_symlink(path("latest")));
  checkpoint::save(path("run/3/checkpoint"), {{"y", make({4}, DType::int32, mesh, {Shard(0)})}});
  EXPECT_TRUE(holds_elements(checkpoint::load(path("run/3/checkpoint"), "y", mesh, {Shard(0)})));
  barrier();
}

TEST_F(Checkpoint, RanksOutsideOfTheMeshReturnAtOnce) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({Runtime::size() - 1}, Shape{1});
  const DTensor x = make({5}, DType::float64, mesh, {Shard(0)});
  checkpoint::save(path("c"), {{"x", x}});
  if (!mesh.is_member()) {
    // Nothing was written by this rank, and nothing it says matters.
    EXPECT_NO_THROW(checkpoint::save("", {{"", x}}));
    EXPECT_NO_THROW(checkpoint::load_into("/none", {{"x", x}}));
  }
  barrier();
  const DTensor loaded = checkpoint::load(path("c"), "x", mesh, {Shard(0)});
  EXPECT_EQ(loaded.to_local().numel(), mesh.is_member() ? 5 : 0);
  EXPECT_EQ(loaded.shape(), Shape{5});
  EXPECT_TRUE(holds_elements(loaded));
}

}  // namespace
}  // namespace dtensor::testing
