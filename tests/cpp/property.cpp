#include "tests/cpp/property.hpp"

#include <rapidcheck/gtest.h>

namespace netdyno {

void check(const std::function<void()>& property) { rc::detail::checkGTest(property); }

namespace draw {

std::int64_t whole(std::int64_t lowest, std::int64_t end) { return *rc::gen::inRange(lowest, end); }

std::uint64_t bits(std::size_t width) {
  return *rc::gen::withSize([width](int size) {
    return rc::gen::resize(size * static_cast<int>(width) / 64, rc::gen::arbitrary<std::uint64_t>());
  });
}

std::size_t index(std::size_t end) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, end)); }

std::size_t count(std::size_t lowest) {
  return lowest + *rc::gen::withSize([](int size) {
           return rc::gen::resize(rc::kNominalSize,
                                  rc::gen::inRange<std::size_t>(0, static_cast<std::size_t>(size) + 1));
         });
}

std::vector<bool> flips() { return *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>()); }

std::vector<std::int64_t> wholes(std::int64_t lowest, std::int64_t end) {
  return *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(lowest, end));
}

std::string text() { return *rc::gen::arbitrary<std::string>(); }

std::string text_of(const std::string& letters) {
  return *rc::gen::container<std::string>(rc::gen::elementOf(letters));
}

std::string bytes(std::size_t size) { return *rc::gen::container<std::string>(size, rc::gen::arbitrary<char>()); }

}  // namespace draw
}  // namespace netdyno
