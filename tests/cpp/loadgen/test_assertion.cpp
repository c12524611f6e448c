#include "loadgen/plan/assertion.hpp"

#include <gtest/gtest.h>

#include "lib/measure/recorder.hpp"

namespace netdyno::load {
namespace {

TEST(Assertion, ErrorsAreThoseOfEveryKind) {
  Figures figures;
  figures.errors = {.timeout = 1, .closed_by_server = 1, .reset = 1, .protocol = 1};
  figures.messages.unexpected = figures.messages.corrupt = 1;
  figures.connections = {.established = 1, .refused = 1, .timed_out = 1, .reset = 1, .other = 1};
  EXPECT_EQ(value_of(parse_assertion("errors=0").value(), figures, 1), 10);
}

}  // namespace
}  // namespace netdyno::load
