#include "loadgen/transport/route.hpp"

#include "loadgen/transport/socket_address.hpp"

namespace netdyno::load {

Route::Route(std::size_t addresses, std::uint32_t connections, Nanos connect_timeout)
    : addresses_(addresses),
      share_(connect_timeout / static_cast<Nanos>(addresses)),
      tries_(addresses > 1 ? connections : 0) {}

void Route::begin(std::uint32_t connection, Nanos now) {
  if (tries_.empty()) return;
  Try& attempt = tries_[connection];
  attempt = {best_.value_or(0), attempt.number + 1, 0, false};
  wait_for(connection, now);
}

bool Route::has_next(const Try& attempt) const {
  return best_ ? attempt.address != *best_ : attempt.address + 1 < addresses_;
}

void Route::wait_for(std::uint32_t connection, Nanos now) {
  const Try& attempt = tries_[connection];
  if (has_next(attempt)) waits_.push_back({now + share_, connection, attempt.number});
}

bool Route::take_next(std::uint32_t connection, int error, Nanos now) {
  if (tries_.empty()) return false;
  Try& attempt = tries_[connection];
  if (attempt.error == 0 || connect_failure(attempt.error) == ConnectFailure::other) attempt.error = error;
  attempt.ended = !has_next(attempt);
  if (attempt.ended) return false;
  attempt.address = best_ ? *best_ : attempt.address + 1;
  ++attempt.number;
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
    const Try& attempt = tries_[wait.connection];
    if (!attempt.ended && attempt.number == wait.number) return wait.connection;
  }
  return std::nullopt;
}

}  // namespace netdyno::load
