#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/_shared/journal.hpp"
#include "clients/_shared/plan.hpp"
#include "loadgen/run.hpp"

namespace netdyno::client {

/// All instances, and the stages of their run, without a loop: the contestant writes that out. `Loop` has
/// * Client{server(), options, handlers}: the library's, with connect(), request(body) and close();
/// * Timer{loop, handler}: calls it at the moment of start_at(moment), unless stop() or another start comes first;
/// * await_go(handler): calls it when a line of stdin can be read; quit(): ends the loop;
/// * connected(established), begin(window): tell the application.
/// On the loop's thread, but for the constructor.
template <typename Loop>
class Network {
 public:
  Network(const ClientPlan& plan, Journal& journal, Loop& loop)
      : plan_(plan), journal_(journal), loop_(loop), linger_(plan.load.linger) {
    for (std::uint32_t id = 0; id < plan.load.connections; ++id)
      instances_.push_back(std::make_unique<Instance>(*this, id));
  }

  /// Begins the first attempts.
  void connect() {
    for (const auto& instance : instances_) instance->connect();
  }

  /// Ends the load early, and then closes with the last answer; ends the linger where that has begun.
  void stop() {
    linger_ = 0;
    over_ ? linger() : end();
  }

 private:
  /// One instance: resolve, connect, request, response, request, ... and again after a failure.
  class Instance {
   public:
    Instance(Network& network, std::uint32_t id)
        : network_(network),
          caller_(network.journal_, id),
          retry_(network.loop_,
                 [this] {
                   if (!network_.over_) connect();
                 }),
          client_(network.loop_.server(), library_options(network.plan_),
                  {.resolved = [this] { caller_.connecting(); },
                   .connected = [this] { on_connected(); },
                   .received = [this](FrameView frame) { return on_received(frame); },
                   .failed = [this](const Error& error) { on_failed(error); }}) {}

    void connect() { client_.connect(); }
    /// The load starts.
    void start() {
      if (connected_ && !waiting()) request();
    }
    /// Stops sending; a pending response is still awaited, and a connection is kept.
    void end() {
      if (!waiting()) connected_ ? rest() : drop();
    }
    /// Lets go of the connection, or of the attempt to get one.
    void drop() {
      connected_ = false;
      retry_.stop();
      client_.close();
    }

    bool waiting() const { return caller_.waiting(); }

   private:
    void on_connected() {
      connected_ = true;
      caller_.connected();
      network_.journal_.begun() ? request() : network_.on_attempt_ended();
    }

    void request() {
      // Otherwise the end, or the timer of it, finds this instance idle.
      if (caller_.may_send()) client_.request(caller_.next());
    }

    Received on_received(FrameView frame) {
      const Received received = caller_.receive(frame.whole);
      if (received == Received::answered) network_.over_ ? finish() : request();
      return received;
    }

    /// Counts it, and tries again a little later.
    void on_failed(const Error& error) {
      if (resting_) return;
      connected_ = false;
      caller_.failed(failure_of(error), error.code);
      if (network_.over_) return network_.note_finished();
      retry_.start_at(load::now_ns() + network_.plan_.retry_delay);
      network_.on_attempt_ended();
    }

    /// After the end: this instance has its last answer, and keeps its connection.
    void finish() {
      rest();
      network_.note_finished();
    }
    void rest() { resting_ = true; }

    Network& network_;
    Caller caller_;
    typename Loop::Timer retry_;
    typename Loop::Client client_;
    bool connected_ = false;
    bool resting_ = false;  // what becomes of the connection is no failure
  };

  /// After the last of the first attempts the load starts, at once or on "go" (--await-go).
  void on_attempt_ended() {
    if (journal_.begun() || !journal_.settled() || std::exchange(settled_, true)) return;
    loop_.connected(journal_.figures().connections.established);
    if (!plan_.load.await_go) return begin(load::now_ns());
    loop_.await_go([this] {
      if (!over_) begin(load::wait_for_go());
    });
  }

  void begin(Nanos start_time) {
    journal_.begin(start_time);
    end_timer_.start_at(journal_.window().end);
    loop_.begin(journal_.window());
    start_time <= load::now_ns() ? start() : start_timer_.start_at(start_time);
  }

  void start() {
    if (over_) return;
    for (const auto& instance : instances_) instance->start();
  }

  /// Stops all sending.
  void end() {
    if (std::exchange(over_, true)) return;
    journal_.end();
    for (const auto& instance : instances_) waiting_ += instance->waiting();
    for (const auto& instance : instances_) instance->end();
    linger();
  }

  /// An instance has its last answer, or has given up.
  void note_finished() {
    --waiting_;
    linger();
  }

  /// With the last answer there is nothing left to do but to keep the connections for a while.
  void linger() {
    if (waiting_ == 0) linger_timer_.start_at(load::now_ns() + linger_);
  }

  void close() {
    for (const auto& instance : instances_) instance->drop();
    loop_.quit();
  }

  const ClientPlan& plan_;
  Journal& journal_;
  Loop& loop_;
  typename Loop::Timer start_timer_{loop_, [this] { start(); }};
  typename Loop::Timer end_timer_{loop_, [this] { end(); }};
  typename Loop::Timer linger_timer_{loop_, [this] { close(); }};
  std::vector<std::unique_ptr<Instance>> instances_;
  std::uint32_t waiting_ = 0;
  Nanos linger_;
  bool settled_ = false;
  bool over_ = false;
};

}  // namespace netdyno::client
