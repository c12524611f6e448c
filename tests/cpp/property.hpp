#pragma once

#include <gtest/gtest.h>
#include <rapidcheck/Assertions.h>

#include <climits>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// A test whose body runs a hundred times on what it draws and says RC_ASSERT of. A failure is shrunk and printed.
/// Only property.cpp knows the templates of RapidCheck: they were half of what the tests cost to compile.
#define PROPERTY(Suite, Name)                                       \
  static void property_##Suite##_##Name();                          \
  TEST(Suite, Name) { netdyno::check(&property_##Suite##_##Name); } \
  static void property_##Suite##_##Name()

namespace netdyno {

void check(const std::function<void()>& property);

namespace draw {

std::int64_t whole(std::int64_t lowest, std::int64_t end);
std::uint64_t bits(std::size_t width);
std::size_t index(std::size_t end);
std::size_t count(std::size_t lowest);
std::vector<bool> flips();

std::vector<std::int64_t> wholes(std::int64_t lowest, std::int64_t end);

std::string text();
std::string text_of(const std::string& letters);
std::string bytes(std::size_t size);

template <std::integral T>
T between(T lowest, T end) {
  return static_cast<T>(whole(static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(end)));
}

template <std::integral T>
T any() {
  return static_cast<T>(std::same_as<T, bool> ? index(2) : bits(sizeof(T) * CHAR_BIT));
}

template <typename T>
T one_of(std::initializer_list<T> choices) {
  return choices.begin()[index(choices.size())];
}

/// As between(), a few times.
template <std::integral T>
std::vector<T> several(T lowest, T end) {
  const auto drawn = wholes(static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(end));
  return {drawn.begin(), drawn.end()};
}

/// A few, and at least `lowest`, of what `make` makes.
template <typename Make>
auto many(Make make, std::size_t lowest = 0) {
  std::vector<decltype(make())> all;
  for (std::size_t left = count(lowest); left > 0; --left) all.push_back(make());
  return all;
}

}  // namespace draw
}  // namespace netdyno
