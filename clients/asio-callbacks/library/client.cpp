#include "clients/asio-callbacks/library/client.hpp"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/endian/conversion.hpp>
#include <cerrno>
#include <concepts>
#include <limits>
#include <utility>

namespace netdyno::client::asio_callbacks {
namespace {

using Clock = asio::steady_timer::clock_type;

/// Hands the kernel all that is left at once, where asio::transfer_all stops at 64 KiB: a write is a system call.
constexpr auto at_once = [](const error_code& error, std::size_t) {
  return error ? 0 : std::numeric_limits<std::size_t>::max();
};

Reason connect_reason(const error_code& error) {
  if (error.value() == ECONNREFUSED) return Reason::refused;
  return error.value() == ETIMEDOUT ? Reason::timed_out : Reason::other;
}

}  // namespace

Server::Server(asio::io_context& io, std::string host, std::uint16_t port)
    : io_(io), host_(std::move(host)), port_(port), resolver_(io) {}

void Server::resolve() {
  if (std::exchange(resolving_, true)) return;
  resolver_.async_resolve(host_, std::to_string(port_), tcp::resolver::numeric_service,
                          [this](const error_code& error, const tcp::resolver::results_type& addresses) {
                            resolving_ = false;
                            // A handler may make a client.
                            for (std::size_t i = 0; i < clients_.size(); ++i)
                              clients_[i]->on_resolved(error, addresses);
                          });
}

Client::Client(Server& server, Options options, Handlers handlers)
    : server_(server), options_(options), handlers_(std::move(handlers)), socket_(server.io_), timer_(server.io_) {
  server_.clients_.push_back(this);
}

Client::~Client() {
  close();
  std::erase(server_.clients_, this);
}

/// A handler that does nothing when its attempt was given up before it came. It takes what the handler takes and
/// nothing else: of the overloads of async_connect, that one counts.
template <typename Handler>
auto Client::in_this_attempt(Handler handler) {
  return [ attempt = attempt_,
           handler ](const auto&... result) requires std::invocable<const Handler&, decltype(result)...> {
    if (*attempt) handler(result...);
  };
}

void Client::connect() {
  close();
  attempt_ = std::make_shared<bool>(true);
  began_ = Clock::now();
  begin(Stage::resolve);
  server_.resolve();
}

void Client::on_resolved(const error_code& error, const tcp::resolver::results_type& addresses) {
  if (!*attempt_ || stage_ != Stage::resolve) return;
  if (error) return fail(Reason::other, error.value());
  begin(Stage::connect);
  handlers_.resolved();
  asio::async_connect(socket_, addresses, in_this_attempt([this](const error_code& result, const tcp::endpoint&) {
                        on_connected(result);
                      }));
}

void Client::on_connected(const error_code& error) {
  if (error) return fail(connect_reason(error), error.value());
  error_code gone_already;  // the next read hears of it
  socket_.set_option(tcp::no_delay{options_.nodelay}, gone_already);
  stage_ = Stage::idle;
  timer_.cancel();
  handlers_.connected();
}

void Client::request(std::string_view body) {
  const std::uint32_t length = boost::endian::native_to_big(static_cast<std::uint32_t>(body.size()));
  request_.assign(reinterpret_cast<const char*>(&length), sizeof length);
  request_.append(body);
  began_ = Clock::now();
  begin(Stage::write);
  const std::size_t first = options_.split_writes ? FrameView::header_size : request_.size();
  asio::async_write(socket_, asio::buffer(request_, first), at_once,
                    in_this_attempt([this](const error_code& error, std::size_t) {
                      if (error) return fail_stream(error);
                      options_.split_writes ? write_body() : read_header();
                    }));
}

void Client::write_body() {
  asio::async_write(
      socket_, asio::buffer(request_) + FrameView::header_size, at_once,
      in_this_attempt([this](const error_code& error, std::size_t) { error ? fail_stream(error) : read_header(); }));
}

void Client::read_header() {
  stage_ = Stage::answer;
  answer_.resize(FrameView::header_size);
  asio::async_read(socket_, asio::buffer(answer_), in_this_attempt([this](const error_code& error, std::size_t) {
                     error ? fail_stream(error) : read_body();
                   }));
}

void Client::read_body() {
  const auto length = boost::endian::load_big_u32(reinterpret_cast<const unsigned char*>(answer_.data()));
  if (length == 0 || length > options_.max_body) return fail(Reason::malformed);
  answer_.resize(FrameView::header_size + length);
  asio::async_read(
      socket_, asio::buffer(answer_) + FrameView::header_size,
      in_this_attempt([this](const error_code& error, std::size_t) { error ? fail_stream(error) : on_frame(); }));
}

void Client::on_frame() {
  stage_ = Stage::idle;  // the application may send the next request at once
  const auto attempt = attempt_;
  const Received received = handlers_.received(FrameView{answer_});
  if (!*attempt || stage_ != Stage::idle) return;
  switch (received) {
    case Received::incomplete:
      return read_header();
    case Received::broken:
      stage_ = Stage::answer;
      return fail(Reason::malformed);
    case Received::answered:
      timer_.cancel();
  }
}

void Client::begin(Stage stage) {
  stage_ = stage;
  arm();
}

void Client::arm() {
  timer_.expires_at(began_ + options_.limits.limit_of(stage_));
  timer_.async_wait(in_this_attempt([this](const error_code& error) {
    if (!error) on_deadline();
  }));
}

void Client::on_deadline() {
  if (stage_ == Stage::idle) return;
  // The stage may have changed since the timer was armed, and rearming does not cancel a wait whose completion was
  // already queued: read the clock.
  began_ + options_.limits.limit_of(stage_) <= Clock::now() ? fail(Reason::timed_out) : arm();
}

void Client::fail_stream(const error_code& error) {
  fail(error == asio::error::eof ? Reason::closed : Reason::reset, error.value());
}

void Client::fail(Reason reason, int code) {
  const Error error{stage_, reason, code};
  close();
  handlers_.failed(error);
}

void Client::close() {
  *attempt_ = false;
  stage_ = Stage::idle;
  timer_.cancel();
  error_code gone_already;
  socket_.close(gone_already);
}

}  // namespace netdyno::client::asio_callbacks
