#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/measure/deliveries.hpp"
#include "lib/measure/process.hpp"
#include "lib/measure/recorder.hpp"
#include "lib/net/arrivals.hpp"
#include "loadgen/connection.hpp"
#include "loadgen/control.hpp"
#include "loadgen/loop_clock.hpp"
#include "loadgen/message_reader.hpp"
#include "loadgen/schedule.hpp"
#include "loadgen/sender.hpp"
#include "loadgen/stream_reader.hpp"
#include "loadgen/transport.hpp"

namespace netdyno::load {

/// One thread of the generator: an event loop of its own over its slice of the connections. It connects all of them,
/// waits for the common start, keeps to its schedule, and waits for the last answers.
class Worker final : private TransportEvents, private ReplySink {
 public:
  Worker(const LoadPlan& plan, const Slice& slice, Control& control, Timeline& timeline);

  /// The body of the thread.
  void run();

  /// Any thread: ends a wait, so that the worker looks at its Control.
  void wake() { transport_->wake(); }
  /// Any thread: messages answered within the window so far.
  std::uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }

  /// When run() has returned.
  const Figures& figures() const { return recorder_.figures; }
  /// This thread's, then that of the threads of its transport.
  const std::vector<CpuTime>& cpu_in_window() const { return cpu_; }

 private:
  // Before the load (connect_phase.cpp).
  void connect_all();
  Nanos connect_time(std::uint32_t number) const;
  void expire_connects(std::uint32_t begun);
  void await_start();
  void send_probes();
  void joined(std::size_t size);

  // The load (worker.cpp).
  void measure(Nanos start);
  Nanos lookout() const;
  void cross_boundary();
  Nanos next_wakeup(Nanos give_up) const;
  bool is_due() const;
  void send_due(int most);
  void expire_some();
  bool drained();
  /// Gives up what was meant before `deadline`; returns how many messages.
  std::uint64_t give_up(Connection& connection, Nanos deadline);
  void finish();

  void on_connected(std::uint32_t number) override;
  void on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) override;
  void on_received(std::uint32_t number, std::string_view bytes, KernelStamp arrived) override;
  void on_messages(std::uint32_t number, std::span<const std::string_view> messages,
                   std::span<const KernelStamp> arrived) override;
  void on_writable(std::uint32_t number) override;
  void on_closed(std::uint32_t number, CloseReason reason) override;
  void let_go(std::uint32_t number);

  void reply(const Stamp& stamp, std::size_t size) override;
  void corrupt() override;
  void rest();
  Nanos lag_since(KernelStamp arrived);
  bool is_chat() const { return plan_.workload == Workload::chat; }
  bool plausible(const Stamp& stamp) const;
  bool unwanted_copy(const Stamp& stamp) const;
  bool completes(const Stamp& stamp) const;
  void complete(std::uint32_t sender, std::uint64_t sequence);
  std::uint64_t recipients() const;
  void choose_witnesses();

  /// The client id of messages that are not part of the load.
  static constexpr std::uint32_t probe_client = 0xffffffff;

  const LoadPlan& plan_;
  const Slice slice_;
  Control& control_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Transport> transport_;
  LoopClock clock_;
  WallClock wall_clock_;
  Recorder recorder_;
  Sender sender_;
  std::vector<Connection> connections_;
  StreamReader streams_;
  std::optional<MessageReader> reader_;  // instead, where whole messages come
  Deliveries deliveries_;
  std::vector<std::uint32_t> witness_;  // chat to others: whose copy completes the message of a sender
  bool sizes_known_;                    // of replies, before they come

  Nanos connect_start_ = 0;
  std::uint32_t settled_ = 0;         // connects that have come to an end
  std::uint32_t oldest_connect_ = 0;  // those before it have come to an end
  std::uint32_t open_ = 0;
  std::uint32_t joined_ = 0;
  Nanos probe_at_ = 0;
  Nanos probe_again_ = 0;
  std::uint64_t probes_ = 0;

  Window window_;
  Nanos now_ = 0;               // read at every event
  Nanos receive_lag_ = never;   // of what is being decoded, where it is known
  std::uint32_t receiver_ = 0;  // whose bytes are being decoded
  std::uint64_t intended_ = 0;  // messages that joined a queue
  std::uint64_t waiting_ = 0;   // those of open connections that are not answered, sent or not
  std::uint64_t overdue_ = 0;   // of these, given up
  Nanos early_ = 0;             // how long before a message is due the lookout for it begins
  Nanos spun_ = 0;              // time on that lookout
  Nanos look_at_ = 0;           // the next look at the sockets, where they are looked at every so often
  std::uint32_t looks_left_ = 0;
  Nanos boundary_ = never;  // the next of window start, window end
  Nanos expire_at_ = never;
  std::uint32_t expire_next_ = 0;
  bool draining_ = false;                               // chat: this thread's messages stand in Control::owed
  std::vector<CpuTime> cpu_ = std::vector<CpuTime>(1);  // in the window; while that lasts, before it
  std::atomic<std::uint64_t> completed_{0};
};

}  // namespace netdyno::load
