// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which operators of the library take what is registered instead of their rules: what
// register_sharding says of every operator is what the operator does, and what the documentation
// says.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "dtensor/core/error.hpp"
#include "dtensor/experimental/register_sharding.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/ops.hpp"
#include "dtensor/ops/pointwise_table.hpp"
#include "ops/layouts.hpp"
#include "ops/table/specimens.hpp"

namespace dtensor::experimental {
namespace {

using testing::Plain;
using testing::Specimen;

std::string operator_of(const Specimen& specimen) {
  return specimen.call.substr(0, specimen.call.find('('));
}

// Every combination of placements of the operands on one mesh dimension.
std::vector<Placements> combinations_of(const std::vector<Plain>& operands) {
  std::vector<Placements> all{{}};
  for (const Plain& operand : operands) {
    Placements choices{Replicate()};
    for (int d = 0; d < operand.shape.size(); ++d) choices.push_back(Shard(d));
    if (operand.dtype != DType::boolean) choices.push_back(Partial());
    std::vector<Placements> longer;
    for (const Placements& c : all) {
      for (const Placement& p : choices) {
        longer.push_back(c);
        longer.back().push_back(p);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<DTensor> placed(const std::vector<Plain>& operands, const Placements& placements,
                            const DeviceMesh& mesh) {
  std::vector<DTensor> list;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Layout layout(operands[i].shape, mesh.grid(), {placements[i]});
    list.emplace_back(mesh, layout,
                      part_of(operands[i], layout, *mesh.coordinate(), i + 1).tensor());
  }
  return list;
}

// The names that operators ask for a registration under, while the object lives.
class Consultations {
 public:
  Consultations() {
    names().clear();
    dtensor::detail::registered_decisions = [](const Operation& operation, Inputs) {
      names().insert(operation.name);
      return std::shared_ptr<const Decision>();
    };
  }
  ~Consultations() { dtensor::detail::registered_decisions = nullptr; }
  static std::set<std::string>& names() {
    static std::set<std::string> instance;
    return instance;
  }
};

// What register_sharding says to a name; empty where it takes it.
std::string refusal(const std::string& name) {
  try {
    const auto registration = register_sharding(
        name, [](const OperatorCall&) { return std::vector<AcceptableSharding>(); });
    return "";
  } catch (const ValueError& e) {
    return e.what();
  }
}

class LibraryOperators : public ::testing::Test {
 protected:
  DeviceMesh mesh{Shape{Runtime::size()}};
};

// Whatever the operands' placements, the function is asked; and what it lists is followed: with
// nothing in the list all results are replicated.
TEST_F(LibraryOperators, ThoseThatAreTakenFollowTheRegistration) {
  std::set<std::string> taken;
  for (const Specimen& specimen : testing::specimens()) {
    const std::string name = operator_of(specimen);
    if (!refusal(name).empty()) continue;
    taken.insert(name);
    for (const Placements& placements : combinations_of(specimen.operands)) {
      const auto operands = placed(specimen.operands, placements, mesh);
      int asked = 0;
      const auto registration = register_sharding(name, [&](const OperatorCall&) {
        ++asked;
        return std::vector<AcceptableSharding>();
      });
      for (const DTensor& result : specimen.run(operands)) {
        EXPECT_EQ(result.placements(), Placements{Replicate()})
            << specimen.call << " of " << to_string(placements);
      }
      EXPECT_GT(asked, 0) << specimen.call << " of " << to_string(placements);
    }
  }
  EXPECT_GT(taken.size(), 100u);
}

// An operator that is refused works by itself for some placements at least.
TEST_F(LibraryOperators, ThoseThatAreRefusedDoNotAsk) {
  if (mesh.size() == 1) return;  // no operator has to do anything
  std::map<std::string, bool> always_asks;
  for (const Specimen& specimen : testing::specimens()) {
    const std::string name = operator_of(specimen);
    if (refusal(name).empty()) continue;
    always_asks.emplace(name, true);
    for (const Placements& placements : combinations_of(specimen.operands)) {
      const auto operands = placed(specimen.operands, placements, mesh);
      const Consultations consultations;
      try {
        specimen.run(operands);
      } catch (const LayoutError&) {
        // in place, and random numbers of Partial tensors
      }
      always_asks[name] &= consultations.names().contains(name);
    }
  }
  EXPECT_GT(always_asks.size(), 30u);
  for (const auto& [name, always] : always_asks) EXPECT_FALSE(always) << name;
}

TEST_F(LibraryOperators, FormsInPlaceAreRefusedAndDoNotAsk) {
  for (const PointwiseRow& row : pointwise_table()) {
    EXPECT_NE(refusal(row.in_place_name), "");
    const DTensor x = ones({4}, mesh, {Shard(0)});
    dtensor::detail::Operands<DTensor> operands;
    for (int i = 0; i < row.arity; ++i) operands.push_back(x);
    const Consultations consultations;
    try {
      dtensor::detail::pointwise_in_place(row.op, operands);
    } catch (const Error&) {
      continue;  // no operator on float64, or with another type of result
    }
    EXPECT_TRUE(consultations.names().empty()) << row.in_place_name;
  }
  EXPECT_NE(refusal("zero_"), "");
}

// With one bound it is the operator of the same name.
TEST_F(LibraryOperators, ClampWithOneBoundFollowsTheRegistrationOfClamp) {
  int asked = 0;
  const auto registration = register_sharding("clamp", [&](const OperatorCall&) {
    ++asked;
    return std::vector<AcceptableSharding>();
  });
  const DTensor x = ones({4, 3}, mesh, {Shard(0)});
  EXPECT_EQ(clamp(x, 2).placements(), Placements{Replicate()});
  EXPECT_EQ(clamp(ones({5}, mesh, {Shard(0)}), std::nullopt, 2).placements(),
            Placements{Replicate()});
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(maximum(x, 2).placements(), Placements{Shard(0)});
}

TEST_F(LibraryOperators, RefusalsNameTheOperatorAndThoseThatWork) {
  const std::string text = refusal("transpose");
  for (const char* word : {"register_sharding", "\"transpose\"", "matmul", "softmax", "\"add\""}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
  EXPECT_EQ(refusal("my::transpose"), "");
  EXPECT_EQ(refusal("an_operator_of_my_own"), "");
  // Nothing is left behind.
  EXPECT_NE(refusal("transpose"), "");
  EXPECT_EQ(transpose(ones({4, 3}, mesh, {Shard(0)}), 0, 1).placements(), Placements{Shard(1)});
}

TEST_F(LibraryOperators, TheDocumentationListsThem) {
  std::ifstream file(EXTENDING);
  std::stringstream contents;
  contents << file.rdbuf();
  const std::string text = contents.str(), first = "<!-- operators with rules -->",
                    last = "<!-- end -->";
  const auto begin = text.find(first), end = text.find(last, begin);
  ASSERT_NE(end, std::string::npos);
  std::set<std::string> listed;
  std::istringstream section(text.substr(begin + first.size(), end - begin - first.size()));
  for (std::string word; std::getline(section, word, '`') && std::getline(section, word, '`');) {
    listed.insert(word);
  }
  std::set<std::string> taken;
  for (const Specimen& specimen : testing::specimens()) {
    const std::string name = operator_of(specimen);
    if (refusal(name).empty()) taken.insert(name);
  }
  for (const PointwiseRow& row : pointwise_table()) taken.erase(row.name);
  EXPECT_EQ(listed, taken);
}

}  // namespace
}  // namespace dtensor::experimental
