#include "lib/net/epoll/poller.hpp"

#include <sys/timerfd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace netdyno {
namespace {

[[noreturn]] void die_of(const char* call) { die(std::string{call} + ": " + std::strerror(errno)); }

bool control(int epoll, int operation, int fd, std::uint32_t events, Watched* watched) {
  epoll_event event{.events = events, .data = {.ptr = watched}};
  return epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

Poller::Poller(std::chrono::nanoseconds busy_poll)
    : busy_poll_(busy_poll),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  if (!epoll_ || !timer_) die_of("epoll_create1 or timerfd_create");
  // Edge-triggered, so an expiry is reported once and need not be read; it has no handler: it only ends a wait.
  if (!control(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), EPOLLIN | EPOLLET, nullptr)) die_of("epoll_ctl");
}

bool Poller::watch(int fd, std::uint32_t events, Watched& watched) {
  return control(epoll_.get(), EPOLL_CTL_ADD, fd, events, &watched);
}

void Poller::rewatch(int fd, std::uint32_t events, Watched& watched) {
  if (!control(epoll_.get(), EPOLL_CTL_MOD, fd, events, &watched)) die_of("epoll_ctl");
}

void Poller::unwatch(int fd) {
  if (!control(epoll_.get(), EPOLL_CTL_DEL, fd, 0, nullptr)) die_of("epoll_ctl");
}

void Poller::set_alarm(Clock::time_point deadline) {
  if (deadline == alarm_) return;
  alarm_ = deadline;
  const auto ns = deadline.time_since_epoch().count();
  const itimerspec alarm_time{{}, {ns / 1'000'000'000, ns % 1'000'000'000}};
  if (timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm_time, nullptr) != 0) die_of("timerfd_settime");
}

int Poller::take_events(int timeout_ms) {
  const int count = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
  if (count < 0 && errno != EINTR) die_of("epoll_wait");
  return count;
}

void Poller::wait(bool block) {
  int count = 0;
  if (block && busy_poll_.count() > 0)
    for (const auto end = Clock::now() + busy_poll_; count == 0 && Clock::now() < end;) count = take_events(0);
  if (count == 0) count = take_events(block ? -1 : 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.ptr == nullptr) {
      alarm_ = {};  // it went off
    } else {
      static_cast<Watched*>(event.data.ptr)->on_events(event.events);
    }
  }
}

}  // namespace netdyno
