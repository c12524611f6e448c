#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "lib/measure/process.hpp"

namespace netdyno::load {
namespace {

TEST(Cores, AThreadThatIsBoundToOneMayUseOne) {
  std::thread{[] {
    ASSERT_GE(usable_cores().size(), 1U);
    const int here = sched_getcpu();
    ASSERT_TRUE(bind_to_cores({here}));
    EXPECT_EQ(usable_cores(), std::vector{here});
    EXPECT_EQ(sched_getcpu(), here);
  }}.join();
}

TEST(Cores, NumbersOfTheLargestMachinesAreWordsForTheKernelAndNotForUs) {
  std::thread{[] {
    const int here = sched_getcpu();
    EXPECT_TRUE(bind_to_cores({here, 1024, core_numbers - 1}));  // it takes those that there are
    EXPECT_EQ(usable_cores(), std::vector{here});
    EXPECT_FALSE(bind_to_cores({core_numbers - 1}));
    EXPECT_EQ(errno, EINVAL);
  }}.join();
}

}  // namespace
}  // namespace netdyno::load
