// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// docs/operator_table.md says what every operator does with every placement: it is written by this
// test, from what the operators are seen to do on two ranks, and compared.
//
// DTENSOR_WRITE_DOCS=1 writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "dtensor/core/error.hpp"
#include "dtensor/debug/comm_debug_mode.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/layouts.hpp"
#include "ops/table/specimens.hpp"

namespace dtensor {
namespace {

using namespace testing;

constexpr std::int64_t ranks = 2;

Placements placements_of(const Plain& operand) {
  Placements list{Replicate()};
  for (int d = 0; d < operand.shape.size(); ++d) list.push_back(Shard(d));
  for (ReduceOp op : reductions_of(operand.dtype)) list.push_back(Partial(op));
  return list;
}

// What an operator did with operands under some placements.
struct Outcome {
  std::string output;  ///< placements of the results, or the name of an error
  std::string cost;    ///< empty for no communication
};

DTensor placed(const Plain& operand, const Placement& placement, const DeviceMesh& mesh,
               std::uint64_t seed) {
  const Layout layout(operand.shape, mesh.grid(), {placement});
  return DTensor(mesh, layout, part_of(operand, layout, *mesh.coordinate(), seed).tensor());
}

// What was communicated, by kind: an exchange in which this rank sends nothing, too.
std::string text_of(const CommDebugMode& communication) {
  std::string text;
  for (int c = 1; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (communication.count(collective) == 0) continue;
    text += fmt::format("{}{} {} B", text.empty() ? "" : ", ", to_string(collective),
                        communication.bytes_sent(collective));
  }
  return text;
}

Outcome outcome_of(const Specimen& specimen, const Placements& placements, const DeviceMesh& mesh) {
  std::vector<DTensor> operands;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    operands.push_back(placed(specimen.operands[i], placements[i], mesh, i + 1));
  }
  Outcome outcome;
  const CommDebugMode communication;
  try {
    for (const DTensor& result : specimen.run(operands)) {
      const std::string text = to_string(result.placements()[0]);
      if (outcome.output == text) continue;
      outcome.output += (outcome.output.empty() ? "" : " and ") + text;
    }
    if (outcome.output.empty()) outcome.output = "bool";
  } catch (const LayoutError&) {
    outcome.output = "LayoutError";
  }
  outcome.cost = text_of(communication);
  return outcome;
}

std::vector<Placements> all_combinations(const Specimen& specimen) {
  std::vector<Placements> all{{}};
  for (const Plain& operand : specimen.operands) {
    std::vector<Placements> longer;
    for (const Placements& c : all) {
      for (const Placement& p : placements_of(operand)) {
        longer.push_back(c);
        longer.back().push_back(p);
      }
    }
    all = std::move(longer);
  }
  return all;
}

using Box = std::vector<std::vector<std::string>>;  // placements of each operand

std::string text_of(const Box& box) {
  std::vector<std::string> parts;
  for (const auto& choices : box) parts.push_back(fmt::format("{}", fmt::join(choices, "/")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Combinations as products of lists, as few and as large as a greedy search finds.
std::vector<Box> boxes_of(const std::vector<std::vector<std::string>>& combinations,
                          const std::vector<std::vector<std::string>>& choices,
                          const std::vector<std::string>& also) {
  std::vector<std::vector<std::string>> left = combinations;
  const auto allowed = [&](const std::vector<std::string>& c) {
    return c == also ||
           std::find(combinations.begin(), combinations.end(), c) != combinations.end();
  };
  const auto all_allowed = [&](const Box& box) {
    std::vector<std::vector<std::string>> members{{}};
    for (const auto& list : box) {
      std::vector<std::vector<std::string>> longer;
      for (const auto& m : members) {
        for (const std::string& p : list) {
          longer.push_back(m);
          longer.back().push_back(p);
        }
      }
      members = std::move(longer);
    }
    return std::all_of(members.begin(), members.end(), allowed);
  };
  std::vector<Box> result;
  while (!left.empty()) {
    Box box;
    for (const std::string& p : left.front()) box.push_back({p});
    for (std::size_t i = 0; i < box.size(); ++i) {
      for (const std::string& p : choices[i]) {
        if (std::find(box[i].begin(), box[i].end(), p) != box[i].end()) continue;
        Box larger = box;
        larger[i].push_back(p);
        if (all_allowed(larger)) box = larger;
      }
    }
    const auto covered = [&](const std::vector<std::string>& c) {
      for (std::size_t i = 0; i < c.size(); ++i) {
        if (std::find(box[i].begin(), box[i].end(), c[i]) == box[i].end()) return false;
      }
      return true;
    };
    left.erase(std::remove_if(left.begin(), left.end(), covered), left.end());
    result.push_back(std::move(box));
  }
  return result;
}

struct Row {
  std::string operands, free, otherwise;
  friend bool operator==(const Row&, const Row&) = default;
};

Row row_of(const Specimen& specimen, const DeviceMesh& mesh) {
  std::vector<std::vector<std::string>> choices;
  Row row;
  for (const Plain& operand : specimen.operands) {
    choices.emplace_back();
    for (const Placement& p : placements_of(operand)) choices.back().push_back(to_string(p));
    row.operands += fmt::format("{}{} {}", row.operands.empty() ? "" : ", ",
                                to_string(operand.dtype), to_string(operand.shape));
  }
  // Combinations by what comes of them.
  std::map<std::string, std::vector<std::vector<std::string>>> free, otherwise;
  std::vector<std::string> whole(choices.size(), "R");
  for (const Placements& placements : all_combinations(specimen)) {
    std::vector<std::string> names;
    for (const Placement& p : placements) names.push_back(to_string(p));
    if (names == whole) continue;
    const Outcome outcome = outcome_of(specimen, placements, mesh);
    const bool one = std::count(names.begin(), names.end(), "R") + 1 >=
                     static_cast<std::ptrdiff_t>(names.size());
    if (outcome.output == "LayoutError") {
      if (one) otherwise[outcome.output].push_back(names);
    } else if (outcome.cost.empty()) {
      const bool unchanged = names.size() == 1 && names[0] == outcome.output;
      free[unchanged ? "unchanged" : outcome.output].push_back(names);
    } else if (one) {
      otherwise[fmt::format("{}: {}", outcome.output, outcome.cost)].push_back(names);
    }
  }
  const auto lines = [&](const auto& groups, bool with_whole) {
    std::string text;
    for (const auto& [what, combinations] : groups) {
      for (const Box& box :
           boxes_of(combinations, choices, with_whole ? whole : std::vector<std::string>{})) {
        text += fmt::format("{}{} → {}", text.empty() ? "" : "<br>", text_of(box), what);
      }
    }
    return text.empty() ? "none" : text;
  };
  row.free = lines(free, choices.size() > 1);
  row.otherwise = lines(otherwise, false);
  return row;
}

const char* const introduction =
    R"(<!-- Written by unit_tests/ops/test_operator_table.cpp, from what the operators do. -->
# What every operator does with every placement

On two ranks in one mesh dimension. *Free* are the placements of the operands, in their order, from
which a result follows without communication, and the placement that the result has; `S(0)/R` stands
for either. Operands that are all replicated (`R`) are always free and left out. *Otherwise* is what
it costs to place one operand in another way while the others are replicated: the placement of the
result, the kinds of communication, and the bytes that rank 0 sends. Operators whose rows are the same
share one. [operators.md](operators.md) explains.
)";

std::string table(const DeviceMesh& mesh) {
  std::string text = introduction;
  std::string section;
  std::vector<std::pair<Row, std::string>> rows;
  const auto finish = [&] {
    for (const auto& [row, calls] : rows) {
      text += fmt::format("| {} | {} | {} | {} |\n", calls, row.operands, row.free, row.otherwise);
    }
    rows.clear();
  };
  for (const Specimen& specimen : specimens()) {
    if (section != specimen.section) {
      finish();
      section = specimen.section;
      text += fmt::format(
          "\n## {}\n\n| operator | operands | free | otherwise |\n|---|---|---|---|\n", section);
    }
    const Row row = row_of(specimen, mesh);
    const std::string call = fmt::format("`{}`", specimen.call);
    const auto same =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == row; });
    if (same == rows.end()) {
      rows.emplace_back(row, call);
    } else {
      same->second += " " + call;
    }
  }
  finish();
  return text;
}

TEST(OperatorTable, DocumentationSaysWhatOperatorsDo) {
  const DeviceMesh mesh(Shape{ranks});
  const std::string now = table(mesh);
  if (Runtime::rank() != 0) return;
  const char* const write = std::getenv("DTENSOR_WRITE_DOCS");
  if (write != nullptr && *write == '1') std::ofstream(OPERATOR_TABLE) << now;
  std::ifstream file(OPERATOR_TABLE);
  std::stringstream documented;
  documented << file.rdbuf();
  std::istringstream now_lines(now), documented_lines(documented.str());
  std::string a, b;
  for (int line = 1; true; ++line) {
    const bool more = static_cast<bool>(std::getline(now_lines, a));
    const bool more_documented = static_cast<bool>(std::getline(documented_lines, b));
    if (!more && !more_documented) break;
    ASSERT_TRUE(more && more_documented && a == b)
        << "docs/operator_table.md, line " << line << ", is\n  "
        << (more_documented ? b : "missing") << "\nwhere operators do\n  " << (more ? a : "nothing")
        << "\nRun this test with DTENSOR_WRITE_DOCS=1 to write it anew, and look at what changed.";
  }
}

// The functions that headers declare for tensors of both kinds, by their names.
std::set<std::string> declared_operators() {
  const std::regex declaration(
      R"(^(?:T|bool|QR<T>|ValuesAndIndices<T>|std::vector<T>) ([a-z]\w*)\(const T& )");
  std::set<std::string> names;
  for (const char* room : {"ops", "random"}) {
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::path(PUBLIC_HEADERS) / "dtensor" / room)) {
      std::ifstream header(entry.path());
      for (std::string line; std::getline(header, line);) {
        std::smatch match;
        if (std::regex_search(line, match, declaration)) names.insert(match[1]);
      }
    }
  }
  return names;
}

TEST(OperatorTable, HasAllOperators) {
  std::set<std::string> known;
  for (const Specimen& specimen : specimens()) {
    known.insert(specimen.call.substr(0, specimen.call.find('(')));
  }
  const std::set<std::string> declared = declared_operators();
  EXPECT_GT(declared.size(), 60u);
  for (const std::string& name : declared) {
    EXPECT_TRUE(known.contains(name) || name.ends_with("_")) << name;
  }
}

}  // namespace
}  // namespace dtensor
