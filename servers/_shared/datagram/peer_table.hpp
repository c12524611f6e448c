#pragma once

#include <algorithm>
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

/// How many clients may be known at once (`--peers`), and how much of what they sent may be held for all of them
/// together, whatever the number of threads that know them. Any thread.
class PeerRoom {
  /// Something that many may take from, until nothing is left.
  class Supply {
   public:
    explicit Supply(std::size_t all) : left_(all) {}
    bool take(std::size_t amount) {
      std::size_t left = left_.load(std::memory_order_relaxed);
      while (left >= amount)
        if (left_.compare_exchange_weak(left, left - amount, std::memory_order_relaxed)) return true;
      return false;
    }
    void give_back(std::size_t amount) { left_.fetch_add(amount, std::memory_order_relaxed); }

   private:
    std::atomic<std::size_t> left_;
  };

 public:
  /// Each client keeps to a bound of its own, but thousands of those are more memory than a machine has.
  static constexpr std::size_t most_bytes = 64 << 20;

  explicit PeerRoom(std::size_t most, std::size_t bytes = most_bytes) : places_(most), bytes_(bytes) {}

  /// One client's place in it, given back in the end with all that it holds. Empty when there was none left.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : room_(std::exchange(other.room_, nullptr)), held_(std::exchange(other.held_, std::size_t{0})) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(room_, other.room_);
      std::swap(held_, other.held_);
      return *this;
    }
    ~Place() {
      if (room_ == nullptr) return;
      room_->bytes_.give_back(held_);
      room_->places_.give_back(1);
    }
    explicit operator bool() const { return room_ != nullptr; }

    /// Holds so many bytes more. False when that were too many for all clients together.
    bool hold(std::size_t bytes) {
      if (!room_->bytes_.take(bytes)) return false;
      held_ += bytes;
      return true;
    }
    void release(std::size_t bytes) {
      held_ -= bytes;
      room_->bytes_.give_back(bytes);
    }

   private:
    friend PeerRoom;
    explicit Place(PeerRoom& room) : room_(&room) {}
    PeerRoom* room_ = nullptr;
    std::size_t held_ = 0;
  };

  Place take() { return places_.take(1) ? Place{*this} : Place{}; }

 private:
  Supply places_;
  Supply bytes_;
};

/// The known peers of a transport without connections, and the ruling on what arrives (protocol/WIRE.md). It does
/// no I/O and reads no clock. `Key` is where messages of a client come from; a `Peer` is what the server has of it.
/// In a full table, a peer that sent only HELO gives way to a newcomer, the longest silent first: a HELO costs its
/// sender nothing, and its address may be a lie. Every operation takes constant time, but for expire(), which does so
/// for each that has expired. One thread.
template <typename Key, typename Peer>
class PeerTable {
 public:
  using Clock = std::chrono::steady_clock;
  using PeerPointer = std::unique_ptr<Peer>;
  /// The peer should keep its place for as long as it costs anything, as its `place`.
  using MakePeer = std::function<PeerPointer(const Key& key, PeerRoom::Place place)>;

  PeerTable(const ServerOptions& options, PeerRoom& room, Counters& counters, MakePeer make_peer)
      : workload_(options.workload),
        timeout_(options.peer_timeout),
        room_(room),
        counters_(counters),
        make_peer_(std::move(make_peer)) {}

  struct Ruling {
    enum class Action {
      drop,     // and nothing else; it is counted
      message,  // for the session of `peer`
      answer,   // send `answer` to where it came from
      join,     // the same, and `peer` is new
      leave     // `gone` is not known any more
    };
    Action action = Action::drop;
    Peer* peer = nullptr;
    std::optional<ControlBytes> answer = {};
    PeerPointer gone = {};
  };

  /// Rules on `bytes` that came from `key` at `now`. `gone(key, token, peer)` when another gives way to it.
  template <typename Gone>
  Ruling receive(const Key& key, std::string_view bytes, Clock::time_point now, Gone&& gone) {
    const auto found = index_.find(key);
    const auto control = decode_control(bytes);
    if (control && control->kind == ControlKind::hello) return greet(found, key, control->token, now, gone);
    if (found == index_.end()) {
      counters_.add_stranger();
      return {};
    }
    note_received(found->second, now);
    if (control && control->kind == ControlKind::bye && control->token == found->second->token)
      return {.action = Ruling::Action::leave, .gone = take_out(found->second)};
    if (!is_one_message(workload_, bytes)) {
      counters_.add_protocol_error();
      return {};
    }
    if (!std::exchange(found->second->has_spoken, true)) spoken_.splice(spoken_.end(), greeted_, found->second);
    return {.action = Ruling::Action::message, .peer = found->second->peer.get()};
  }

  /// Forgets a peer that the transport reports as gone. Null when it is not known.
  PeerPointer remove(const Key& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : take_out(found->second);
  }

  /// Forgets peers that were silent for the timeout: `gone(key, token, peer)`.
  template <typename Gone>
  void expire(Clock::time_point now, Gone&& gone) {
    for (Entries* known : {&greeted_, &spoken_}) {
      while (!known->empty() && known->front().received_at + timeout_ <= now) {
        counters_.add_peer_expired();
        take_out_first(*known, gone);
      }
    }
  }

  /// The earliest moment when expire() has something to do, if no new peer comes.
  Clock::time_point next_expiry(Clock::time_point now) const {
    Clock::time_point first = now;
    for (const Entries* known : {&greeted_, &spoken_})
      if (!known->empty()) first = std::min(first, known->front().received_at);
    return first + timeout_;
  }

  /// Forgets all peers: `gone(key, token, peer)`.
  template <typename Gone>
  void clear(Gone&& gone) {
    for (Entries* known : {&greeted_, &spoken_})
      while (!known->empty()) take_out_first(*known, gone);
  }

  /// `visit(key, peer)` for all peers.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Entries* known : {&greeted_, &spoken_})
      for (const Entry& entry : *known) visit(entry.key, *entry.peer);
  }

  std::size_t size() const { return index_.size(); }

 private:
  struct Entry {
    Key key;
    std::uint64_t token;
    Clock::time_point received_at;
    PeerPointer peer;
    bool has_spoken = false;  // a message, and not only HELO
  };
  using Entries = std::list<Entry>;
  using Position = typename Entries::iterator;
  using Index = std::unordered_map<Key, Position>;

  template <typename Gone>
  Ruling greet(typename Index::iterator found, const Key& key, std::uint64_t token, Clock::time_point now, Gone& gone) {
    const auto answer = [&](ControlKind kind) { return encode_control({kind, token}); };
    if (found != index_.end()) {
      note_received(found->second, now);
      found->second->token = token;
      return {.action = Ruling::Action::answer, .answer = answer(ControlKind::welcome)};
    }
    auto place = room_.take();
    if (!place && !greeted_.empty()) place = give_way(gone);
    if (!place) {
      counters_.add_peer_refused();
      return {.action = Ruling::Action::answer, .answer = answer(ControlKind::full)};
    }
    counters_.add_connection();
    greeted_.push_back({key, token, now, make_peer_(key, std::move(place))});
    index_.emplace(key, std::prev(greeted_.end()));
    return {.action = Ruling::Action::join, .peer = greeted_.back().peer.get(), .answer = answer(ControlKind::welcome)};
  }

  /// The place of the one that has only greeted and was silent the longest. It costs nothing any more: it is idle.
  template <typename Gone>
  PeerRoom::Place give_way(Gone& gone) {
    PeerRoom::Place place = std::move(greeted_.front().peer->place);
    counters_.add_peer_expired();
    take_out_first(greeted_, gone);
    return place;
  }

  /// Keeps each list in the order in which they were last heard.
  void note_received(Position position, Clock::time_point now) {
    position->received_at = now;
    Entries& known = list_of(position);
    known.splice(known.end(), known, position);
  }

  Entries& list_of(Position position) { return position->has_spoken ? spoken_ : greeted_; }

  PeerPointer take_out(Position position) {
    PeerPointer peer = std::move(position->peer);
    index_.erase(position->key);
    list_of(position).erase(position);
    return peer;
  }

  template <typename Gone>
  void take_out_first(Entries& known, Gone& gone) {
    const Key key = known.front().key;
    const std::uint64_t token = known.front().token;
    gone(key, token, take_out(known.begin()));
  }

  const Workload workload_;
  const Clock::duration timeout_;
  PeerRoom& room_;
  Counters& counters_;
  const MakePeer make_peer_;
  // The known peers, in the order in which they were last heard.
  Entries greeted_;  // and have sent no message yet
  Entries spoken_;
  Index index_;
};

}  // namespace netdyno
