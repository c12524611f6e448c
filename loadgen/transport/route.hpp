#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "lib/measure/clock.hpp"

namespace netdyno::load {

/// Decides which address of its server each connection of a thread tries: all in order, until one of them has led to
/// the server, and from then on that one, so that a load goes to one place. An address that is silent has its share of
/// the time of a connect (RFC 8305 would begin the next one beside it; here each connection is one attempt).
class Route {
 public:
  /// `addresses` is how many there are, at least one.
  Route(std::size_t addresses, std::uint32_t connections, Nanos connect_timeout);

  /// A connect begins.
  void begin(std::uint32_t connection, Nanos now);
  /// The address that a connection tries, by its number.
  std::size_t address(std::uint32_t connection) const { return tries_.empty() ? 0 : tries_[connection].address; }

  /// The address is none. True where there is another, which is tried from now on.
  bool take_next(std::uint32_t connection, int error, Nanos now);
  /// Why a connect failed for good, by an errno: that of the first address, for it was the best, but where it says only
  /// that there is no way to it.
  int error(std::uint32_t connection, int last) const;
  /// The connection stands.
  void arrived(std::uint32_t connection);

  /// When the next address has had its share of time; `never` where there is none to wait for.
  Nanos due() const { return waits_.empty() ? never : waits_.front().until; }
  /// A connection whose address has had its share, and which was not reported since. Nothing where there is none.
  std::optional<std::uint32_t> take_expired(Nanos now);

 private:
  struct Try {
    std::size_t address = 0;
    std::uint32_t number = 0;  // of all tries of this connection
    int error = 0;             // of the first address
    bool ended = true;
  };
  struct Wait {
    Nanos until;
    std::uint32_t connection;
    std::uint32_t number;
  };

  bool has_next(const Try& attempt) const;
  void wait_for(std::uint32_t connection, Nanos now);

  std::size_t addresses_;
  Nanos share_;
  std::optional<std::size_t> best_;
  std::vector<Try> tries_;  // empty where there is one address
  std::deque<Wait> waits_;  // in the order of their ends
};

}  // namespace netdyno::load
