#include "loadgen/transport/route.hpp"

#include "loadgen/transport/address.hpp"

namespace netdyno::load {

Route::Route(std::size_t addresses, std::uint32_t connections, Nanos connect_timeout)
    : addresses_(addresses),
      share_(connect_timeout / static_cast<Nanos>(addresses)),
      tries_(addresses > 1 ? connections : 0) {}

void Route::begin(std::uint32_t connection, Nanos now) {
  if (tries_.empty()) return;
  Try& one = tries_[connection];
  one = {best_.value_or(0), one.number + 1, 0, false};
  wait_for(connection, now);
}

bool Route::has_next(const Try& one) const { return best_ ? one.address != *best_ : one.address + 1 < addresses_; }

void Route::wait_for(std::uint32_t connection, Nanos now) {
  const Try& one = tries_[connection];
  if (has_next(one)) waits_.push_back({now + share_, connection, one.number});
}

bool Route::take_next(std::uint32_t connection, int error, Nanos now) {
  if (tries_.empty()) return false;
  Try& one = tries_[connection];
  if (one.error == 0 || connect_failure(one.error) == ConnectFailure::other) one.error = error;
  one.ended = !has_next(one);
  if (one.ended) return false;
  one.address = best_ ? *best_ : one.address + 1;
  ++one.number;
  wait_for(connection, now);
  return true;
}

int Route::error(std::uint32_t connection, int last) const {
  return tries_.empty() || tries_[connection].error == 0 ? last : tries_[connection].error;
}

void Route::arrived(std::uint32_t connection) {
  if (tries_.empty()) return;
  if (!best_) best_ = tries_[connection].address;
  tries_[connection].ended = true;
}

std::optional<std::uint32_t> Route::take_expired(Nanos now) {
  while (due() <= now) {
    const Wait wait = waits_.front();
    waits_.pop_front();
    const Try& one = tries_[wait.connection];
    if (!one.ended && one.number == wait.number) return wait.connection;
  }
  return std::nullopt;
}

}  // namespace netdyno::load
