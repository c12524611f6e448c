#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/measure/process.hpp"
#include "lib/measure/recorder.hpp"
#include "lib/net/arrivals.hpp"
#include "loadgen/connect/connecting.hpp"
#include "loadgen/connect/loop_clock.hpp"
#include "loadgen/connect/sender.hpp"
#include "loadgen/connect/slow_readers.hpp"
#include "loadgen/lookout.hpp"
#include "loadgen/match/clients.hpp"
#include "loadgen/match/control.hpp"
#include "loadgen/match/matching.hpp"
#include "loadgen/match/message_reader.hpp"
#include "loadgen/match/stream_reader.hpp"
#include "loadgen/peer.hpp"
#include "loadgen/plan/schedule.hpp"
#include "loadgen/transport/transport.hpp"

namespace netdyno::load {

/// One thread of the generator: an event loop of its own over its share of the connections. It connects all of them and
/// waits for the common start (Connecting), keeps to its schedule, and waits for the last answers (Matching).
class Worker final : private TransportEvents {
 public:
  Worker(const LoadPlan& plan, const ThreadShare& share, Control& control, Timeline& timeline);

  /// The body of the thread.
  void run();

  /// Any thread: ends a wait, so that the worker looks at its Control.
  void wake() { transport_->wake(); }
  /// Any thread: messages answered within the window so far.
  std::uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  /// Any thread: messages that were meant for the window and are answered so far.
  std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }

  /// When run() has returned.
  const Figures& figures() const { return figures_; }
  /// This thread's, then that of the threads of its transport; of the last slice. Also while it waits for the next one.
  const std::vector<CpuTime>& cpu_in_window() const { return cpu_; }

 private:
  void measure(Nanos start);
  Nanos await_next_slice(Nanos last);
  void settle(bool counts);
  Lookout lookout() const;
  ReplyLookout reply_lookout() const;
  bool looks_for_replies(Nanos until);
  bool may_read_later(Nanos until);
  void sleep_and_read(Nanos until);
  void note_held(std::uint32_t number);
  bool is_held(std::uint32_t number) const;
  void cross_boundary();
  Nanos next_wakeup(Nanos give_up) const;
  bool is_due() const;
  bool claim_from_count(Nanos intended);
  bool has_all_answers() const;
  bool ends_with_the_count();
  void report_answered();
  void end_for_all(Nanos moment);
  void tell_progress();
  void send_due(int most);
  void send_joined(int most);
  void queue_all_due();
  bool queue_next();
  void send_queued(std::uint32_t number);
  void send_between_events();
  bool has_to_send() const;
  void expire_some();
  bool drained();
  void finish();
  void rest();
  Nanos lag_since(KernelStamp arrived);
  void time_what_came(std::uint32_t number, KernelStamp arrived);
  void set_slow_readers_apart();
  void heed_early_end();  // Control::interrupt, or the end of a count
  void end_window(Nanos end);
  void connect_failed(std::uint32_t number, ConnectFailure failure, int error, const std::string& why);
  bool is_chat() const { return plan_.workload == Workload::chat; }

  void on_connected(std::uint32_t number) override;
  void on_connect_failed(std::uint32_t number, ConnectFailure failure, int error) override;
  void on_received(std::uint32_t number, std::string_view bytes, KernelStamp arrived) override;
  void on_messages(std::uint32_t number, std::span<const std::string_view> messages,
                   std::span<const KernelStamp> arrived) override;
  void on_writable(std::uint32_t number) override;
  void on_closed(std::uint32_t number, CloseReason reason) override;

  const LoadPlan& plan_;
  Control& control_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<Schedule> schedule_;  // of a slice
  std::unique_ptr<Transport> transport_;
  LoopClock clock_;
  WallClock wall_clock_;
  Recorder recorder_;
  Figures figures_;  // of all slices before the one that the recorder has
  Sender sender_;
  Clients clients_;
  Connecting connecting_;
  Matching matching_;
  StreamReader streams_;
  SlowReaders slow_readers_;
  std::unique_ptr<Peer> peer_;
  std::optional<MessageReader> reader_;  // instead, where whole messages come

  Window window_;
  Nanos now_ = 0;               // read at every event
  std::uint64_t intended_ = 0;  // messages that joined a queue
  Lookout lookout_;             // for the next message
  ReplyLookout reply_lookout_;
  const bool by_kernel_;  // times end with the kernel's stamps, where there are any
  LateReads late_reads_;
  std::vector<std::uint32_t> held_;  // connections that may wait for room, an answer or the server to send what is due
  Nanos spun_ = 0;                   // time on it
  Nanos look_at_ = 0;                // the next look at the sockets, where they are looked at every so often
  std::uint32_t looks_left_ = 0;
  const bool joined_;                  // what is due on a connection leaves in one call
  bool may_queue_ = true;              // and nothing has joined the queues since the last look
  std::vector<std::uint32_t> queued_;  // connections that were given messages, to be sent from `queued_at_` on
  std::size_t queued_at_ = 0;
  bool spent_ = false;      // no message is left: of --count, or between slices
  bool reported_ = false;   // and all of this thread are answered, which Control knows
  Nanos boundary_ = never;  // the next of window start, window end
  Nanos expire_at_ = never;
  Nanos give_up_ = never;   // when the last answers are not waited for any more
  Nanos patience_ = never;  // the shortest time after which something is given up
  std::uint32_t expire_next_ = 0;
  std::vector<CpuTime> cpu_ = std::vector<CpuTime>(1);  // in the window; while that lasts, before it
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> answered_{0};
};

}  // namespace netdyno::load
