#include "servers/_shared/uring/acceptor.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "lib/net/accept.hpp"

namespace netdyno {
namespace {

bool is_beyond_limit(const UniqueFd& fd) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd.get()) >= limit.rlim_cur;
}

}  // namespace

Acceptor::Acceptor(Ring& ring, UniqueFd listener, Take take)
    : ring_(ring), listener_(std::move(listener)), take_(std::move(take)) {}

void Acceptor::start() {
  ring_.ask(accepting_, [this](io_uring_sqe* entry) {
    // Blocking sockets: of others the kernel says EAGAIN where it should wait.
    io_uring_prep_multishot_accept(entry, listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  });
}

void Acceptor::stop() {
  listener_.reset();
  waiting_.clear();
  stop_accepting();
}

void Acceptor::on_accepted(Completion completion) {
  if (completion.result >= 0) take_or_let_wait(UniqueFd{completion.result});
  if (accepting_.in_flight() || !listener_) return;
  const AcceptStatus status = completion.result >= 0 ? AcceptStatus::accepted : accept_status(-completion.result);
  if (status == AcceptStatus::exhausted || !waiting_.empty()) {
    pause();
  } else if (status != AcceptStatus::not_listening) {
    start();
  }
}

void Acceptor::take_or_let_wait(UniqueFd connection) {
  if (!listener_) return;
  if (is_beyond_limit(connection)) {
    waiting_.push_back(std::move(connection));
    stop_accepting();
  } else {
    take_(std::move(connection));
  }
}

void Acceptor::pause() { ring_.ask_at(Ring::Clock::now() + std::chrono::milliseconds{10}, pause_); }

void Acceptor::go_on(Completion) {
  if (!listener_) return;
  for (; !waiting_.empty(); waiting_.pop_back()) {
    UniqueFd within_limit{fcntl(waiting_.back().get(), F_DUPFD_CLOEXEC, 0)};
    if (!within_limit) return pause();
    take_(std::move(within_limit));
  }
  start();
}

void Acceptor::stop_accepting() {
  if (accepting_.in_flight() && !cancelling_.in_flight()) ring_.ask_to_cancel(accepting_, cancelling_);
}

void Acceptor::on_cancelled(Completion completion) {
  if (completion.result != 0 && (!listener_ || !waiting_.empty())) stop_accepting();
}

}  // namespace netdyno
