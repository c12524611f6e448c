#include "servers/_shared/uring/ring.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

/// More than that asked for in a turn takes a system call in between.
constexpr unsigned submission_entries = 1024;
/// More than that unread in a turn is kept elsewhere by the kernel, which costs it memory (IORING_FEAT_NODROP).
constexpr unsigned completion_entries = 4096;

const char* hint(int error) {
  switch (error) {
    case EINVAL:
      return " (it takes Linux 6.1)";
    case ENOSYS:
    case EPERM:
      return " (forbidden by sysctl kernel.io_uring_disabled, or in this container, or not in this kernel)";
    case ENOMEM:
      return " (raise ulimit -l, or ask for fewer --threads)";
    case EMFILE:
      return " (raise ulimit -n, or ask for fewer --threads)";
    default:
      return "";
  }
}

}  // namespace

Ring::Ring() {
  io_uring_params parameters{};
  parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED |
                     IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
  parameters.cq_entries = completion_entries;
  const int error = -io_uring_queue_init_params(submission_entries, &ring_, &parameters);
  if (error != 0) die_errno(std::string{"io_uring_setup"} + hint(error), error);
}

void Ring::enable() {
  // Not io_uring_enable_rings(3), which liburing declares and up to 2.3 does not export.
  if (syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) != 0)
    die_errno("io_uring_register", errno);
  // Spares each call the look-up of the ring's descriptor. Where that cannot be had, the calls do with the descriptor.
  io_uring_register_ring_fd(&ring_);
}

void Ring::ask_at(Clock::time_point deadline, Timeout& timeout) {
  const auto ns = deadline.time_since_epoch().count();
  timeout.moment = {ns / 1'000'000'000, ns % 1'000'000'000};
  ask(timeout.operation,
      [&](io_uring_sqe* entry) { io_uring_prep_timeout(entry, &timeout.moment, 0, IORING_TIMEOUT_ABS); });
}

void Ring::ask_to_cancel(Operation& cancelled, Operation& cancelling) {
  ask(cancelling, [&](io_uring_sqe* entry) { io_uring_prep_cancel(entry, &cancelled, 0); });
}

void Ring::submit() { submitted(io_uring_submit(&ring_)); }
void Ring::submit_and_poll() { submitted(io_uring_submit_and_get_events(&ring_)); }
void Ring::submit_and_wait() { submitted(io_uring_submit_and_wait(&ring_, 1)); }

/// Leaves what the kernel could not take now in the queue, for the next time (io_uring_enter(2)).
void Ring::submitted(int result) {
  ++submits_;
  if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) die_errno("io_uring_enter", -result);
}

io_uring_sqe* Ring::next_entry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  for (; entry == nullptr; entry = io_uring_get_sqe(&ring_)) submit();
  return entry;
}

void Ring::dispatch() {
  io_uring_cqe* entry = nullptr;
  unsigned head = 0;
  unsigned count = 0;
  io_uring_for_each_cqe(&ring_, head, entry) {
    auto& operation = *static_cast<Operation*>(io_uring_cqe_get_data(entry));
    operation.in_flight_ = (entry->flags & IORING_CQE_F_MORE) != 0;
    operation.function_(operation.object_, {entry->res, entry->flags});
    ++count;
  }
  io_uring_cq_advance(&ring_, count);
}

}  // namespace netdyno
