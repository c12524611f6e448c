#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>

namespace netdyno {

/// The result of an operation.
struct Completion {
  int result;           // as the system call of that name returns it, or an errno with a minus
  std::uint32_t flags;  // IORING_CQE_F_
};

/// Something that the kernel is asked to do, and the member function that is called with what comes of it: once, or
/// time after time where it is asked for that (multishot). It stays where it is while it is in flight: the kernel gives
/// its address back.
class Operation {
 public:
  using Function = void (*)(void* object, Completion completion);

  Operation(Function function, void* object) : function_(function), object_(object) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// It was asked for, and more will come of it.
  bool in_flight() const { return in_flight_; }

 private:
  friend class Ring;

  const Function function_;
  void* const object_;
  bool in_flight_ = false;
};

/// operation<&Class::method>(object)
template <auto method, typename Object>
Operation operation(Object& object) {
  return {[](void* target, Completion completion) { (static_cast<Object*>(target)->*method)(completion); }, &object};
}

/// An operation that is over at a moment, and where that moment is kept until the kernel has read it.
struct Timeout {
  Operation operation;
  __kernel_timespec moment{};
};

/// The two queues that a thread shares with the kernel (io_uring(7)): what it asks for, and what came of it. It submits
/// for one thread (IORING_SETUP_SINGLE_ISSUER), and the kernel's own work on what has arrived is done in that thread's
/// calls, when it asks for news, and never in between (IORING_SETUP_DEFER_TASKRUN). Dies where it cannot go on.
class Ring {
 public:
  using Clock = std::chrono::steady_clock;

  /// Any thread, so that what is missing is known before a server says that it is ready.
  Ring();
  ~Ring() { io_uring_queue_exit(&ring_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Makes the calling thread the only one that may use the ring from now on.
  void enable();

  /// Asks for an operation that is not in flight, as `prepare(entry)` says (io_uring_prep_*(3)). The next submit
  /// passes it to the kernel.
  template <typename Prepare>
  void ask(Operation& operation, Prepare&& prepare) {
    io_uring_sqe* entry = next_entry();
    prepare(entry);
    io_uring_sqe_set_data(entry, &operation);
    operation.in_flight_ = true;
  }
  void ask_at(Clock::time_point deadline, Timeout& timeout);
  /// submit_and_wait() returns by then, so that its caller reads the clock. One moment at a time.
  void wake_at(Clock::time_point deadline) { ask_at(deadline, wake_up_); }
  /// The operation then ends as it would have, or with ECANCELED; `cancelling` says whether there was something to end
  /// (io_uring_prep_cancel(3)).
  void ask_to_cancel(Operation& cancelled, Operation& cancelling);

  /// Each is one system call, which does what was asked for as far as it can be done at once. The second also asks what
  /// has become of the rest, and the third waits until something has.
  void submit();
  void submit_and_poll();
  void submit_and_wait();
  /// So many were made.
  std::uint64_t submits() const { return submits_; }

  /// Calls the operations of which something came.
  void dispatch();

  io_uring* get() { return &ring_; }

 private:
  io_uring_sqe* next_entry();
  void submitted(int result);

  io_uring ring_{};
  std::uint64_t submits_ = 0;
  Timeout wake_up_{.operation = {[](void*, Completion) {}, nullptr}};
};

}  // namespace netdyno
