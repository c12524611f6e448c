#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/protocol/handshake.hpp"
#include "lib/server/options.hpp"
#include "lib/session/counters.hpp"

namespace netdyno {

/// How many clients may be known at once (`--peers`), whatever the number of threads that know them. Any thread.
class PeerRoom {
 public:
  explicit PeerRoom(std::size_t most) : left_(most) {}

  /// One client's place in it, given back in the end. Empty when there was none left.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept : room_(std::exchange(other.room_, nullptr)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(room_, other.room_);
      return *this;
    }
    ~Place() {
      if (room_ != nullptr) room_->left_.fetch_add(1, std::memory_order_relaxed);
    }
    explicit operator bool() const { return room_ != nullptr; }

   private:
    friend PeerRoom;
    explicit Place(PeerRoom& room) : room_(&room) {}
    PeerRoom* room_ = nullptr;
  };

  Place take() {
    std::size_t left = left_.load(std::memory_order_relaxed);
    while (left > 0)
      if (left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return Place{*this};
    return {};
  }

 private:
  std::atomic<std::size_t> left_;
};

/// Who is known on a transport without connections, and what becomes of what arrives there (protocol/WIRE.md). It does
/// no I/O and reads no clock. `Key` is where messages of a client come from; a `Peer` is what the server has of it.
/// Every operation takes constant time, but for expire(), which does so for each that has expired. One thread.
template <typename Key, typename Peer>
class PeerTable {
 public:
  using Clock = std::chrono::steady_clock;
  using PeerPointer = std::unique_ptr<Peer>;
  /// The peer should keep its place for as long as it costs anything.
  using MakePeer = std::function<PeerPointer(const Key& key, PeerRoom::Place place)>;

  PeerTable(const ServerOptions& options, PeerRoom& room, Counters& counters, MakePeer make_peer)
      : workload_(options.workload),
        timeout_(options.peer_timeout),
        room_(room),
        counters_(counters),
        make_peer_(std::move(make_peer)) {}

  struct Ruling {
    enum class Kind {
      drop,     // and nothing else; it is counted
      message,  // for the session of `peer`
      answer,   // send `answer` to where it came from
      join,     // the same, and `peer` is new
      leave     // `gone` is not known any more
    };
    Kind kind = Kind::drop;
    Peer* peer = nullptr;
    std::optional<ControlBytes> answer = {};
    PeerPointer gone = {};
  };

  /// What becomes of `bytes` that came from `key` at `now`.
  Ruling receive(const Key& key, std::string_view bytes, Clock::time_point now) {
    const auto found = index_.find(key);
    const auto control = decode_control(bytes);
    if (control && control->kind == ControlKind::hello) return hello(found, key, control->token, now);
    if (found == index_.end()) {
      counters_.add_stranger();
      return {};
    }
    heard_of(found->second, now);
    if (control && control->kind == ControlKind::bye && control->token == found->second->token)
      return {.kind = Ruling::Kind::leave, .gone = take_out(found->second)};
    if (!is_one_message(workload_, bytes)) {
      counters_.add_protocol_error();
      return {};
    }
    return {.kind = Ruling::Kind::message, .peer = found->second->peer.get()};
  }

  /// Forgets one of whom the transport says that it is not there any more. Null when it is not known.
  PeerPointer remove(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : take_out(found->second);
  }

  /// Forgets who was silent for the timeout: `gone(key, token, peer)`.
  template <typename Gone>
  void expire(Clock::time_point now, Gone&& gone) {
    while (!known_.empty() && known_.front().heard + timeout_ <= now) {
      counters_.add_peer_expired();
      take_out_first(gone);
    }
  }

  /// When expire() has something to do at the earliest, if nobody new comes.
  Clock::time_point next_expiry(Clock::time_point now) const {
    return (known_.empty() ? now : known_.front().heard) + timeout_;
  }

  /// Forgets everybody: `gone(key, token, peer)`.
  template <typename Gone>
  void clear(Gone&& gone) {
    while (!known_.empty()) take_out_first(gone);
  }

  /// `visit(key, peer)` for everybody.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : known_) visit(entry.key, *entry.peer);
  }

  std::size_t size() const { return known_.size(); }

 private:
  struct Entry {
    Key key;
    std::uint64_t token;
    Clock::time_point heard;
    PeerPointer peer;
  };
  using Position = typename std::list<Entry>::iterator;
  using Index = std::unordered_map<Key, Position>;

  Ruling hello(typename Index::iterator found, const Key& key, std::uint64_t token, Clock::time_point now) {
    const auto answer = [&](ControlKind kind) { return encode_control({kind, token}); };
    if (found != index_.end()) {
      heard_of(found->second, now);
      found->second->token = token;
      return {.kind = Ruling::Kind::answer, .answer = answer(ControlKind::welcome)};
    }
    auto place = room_.take();
    if (!place) {
      counters_.add_peer_refused();
      return {.kind = Ruling::Kind::answer, .answer = answer(ControlKind::full)};
    }
    counters_.add_connection();
    known_.push_back({key, token, now, make_peer_(key, std::move(place))});
    index_.emplace(key, std::prev(known_.end()));
    return {.kind = Ruling::Kind::join, .peer = known_.back().peer.get(), .answer = answer(ControlKind::welcome)};
  }

  /// Keeps known_ in the order in which they were last heard.
  void heard_of(Position position, Clock::time_point now) {
    position->heard = now;
    known_.splice(known_.end(), known_, position);
  }

  PeerPointer take_out(Position position) {
    PeerPointer peer = std::move(position->peer);
    index_.erase(position->key);
    known_.erase(position);
    return peer;
  }

  template <typename Gone>
  void take_out_first(Gone& gone) {
    const Key key = known_.front().key;
    const std::uint64_t token = known_.front().token;
    gone(key, token, take_out(known_.begin()));
  }

  const Workload workload_;
  const Clock::duration timeout_;
  PeerRoom& room_;
  Counters& counters_;
  const MakePeer make_peer_;
  std::list<Entry> known_;  // in the order in which they were last heard
  Index index_;
};

}  // namespace netdyno
