#include "clients/qt-signals/library/client.hpp"

#include <QHostInfo>
#include <QNetworkProxy>
#include <QtEndian>
#include <algorithm>
#include <limits>
#include <utility>

namespace netdyno::client::qt_signals {
namespace {

using Clock = std::chrono::steady_clock;

Reason connect_reason(QAbstractSocket::SocketError error) {
  switch (error) {
    case QAbstractSocket::ConnectionRefusedError:
      return Reason::refused;
    case QAbstractSocket::SocketTimeoutError:
      return Reason::timed_out;
    default:
      return Reason::other;
  }
}

}  // namespace

Alarm::Alarm() {
  setSingleShot(true);
  setTimerType(Qt::PreciseTimer);
}

void Alarm::start_after(std::chrono::nanoseconds span) {
  using std::chrono::milliseconds;
  const auto whole = std::chrono::ceil<milliseconds>(std::max(span, std::chrono::nanoseconds::zero()));
  start(std::min(whole, milliseconds{std::numeric_limits<int>::max()}));
}

Server::Server(std::string host, std::uint16_t port) : host_(std::move(host)), port_(port) {}

void Server::resolve() {
  if (std::exchange(resolving_, true)) return;
  QHostInfo::lookupHost(QString::fromStdString(host_), this, [this](const QHostInfo& found) {
    resolving_ = false;
    for (std::size_t i = 0; i < clients_.size(); ++i) clients_[i]->on_resolved(found);  // a handler may make a client
  });
}

Client::Client(Server& server, Options options, Handlers handlers)
    : server_(server), options_(options), handlers_(std::move(handlers)) {
  server_.clients_.push_back(this);
  socket_.setProxy(QNetworkProxy::NoProxy);
  connect(&socket_, &QTcpSocket::connected, this, &Client::on_connected);
  connect(&socket_, &QTcpSocket::readyRead, this, &Client::on_ready_read);
  connect(&socket_, &QTcpSocket::errorOccurred, this, &Client::on_error);
  connect(&deadline_, &QTimer::timeout, this, &Client::on_deadline);
  connect(&next_, &QTimer::timeout, this, &Client::connect_to_next);
}

Client::~Client() {
  close();
  std::erase(server_.clients_, this);
}

void Client::connect_to_server() {
  close();
  open_ = true;
  began_ = Clock::now();
  begin(Stage::resolve);
  server_.resolve();
}

void Client::on_resolved(const QHostInfo& found) {
  if (!open_ || stage_ != Stage::resolve) return;
  addresses_ = found.addresses();
  if (addresses_.isEmpty()) return fail(Reason::other);
  refusal_ = Reason::other;
  begin(Stage::connect);
  handlers_.resolved();
  connect_to_next();
}

/// `localhost` is ::1 and 127.0.0.1, and a server listens at one of them.
void Client::connect_to_next() {
  socket_.abort();
  socket_.connectToHost(addresses_.takeFirst(), server_.port_);
}

void Client::on_connected() {
  stage_ = Stage::idle;
  deadline_.stop();
  socket_.setSocketOption(QAbstractSocket::LowDelayOption, options_.nodelay ? 1 : 0);
  handlers_.connected();
}

void Client::request(std::string_view body) {
  char header[FrameView::header_size];
  qToBigEndian(static_cast<quint32>(body.size()), header);
  began_ = Clock::now();
  begin(Stage::write);
  const std::uint64_t attempt = attempt_;
  write({header, sizeof header});
  if (options_.split_writes) socket_.flush();
  if (attempt != attempt_) return;  // the flush has found the connection gone, and on_error has dropped it
  write(body);                      // the socket gathers what comes before the loop has its next turn
  if (options_.split_writes) socket_.flush();
}

void Client::write(std::string_view bytes) { socket_.write(bytes.data(), static_cast<qint64>(bytes.size())); }

void Client::on_ready_read() {
  const std::uint64_t attempt = attempt_;
  const std::size_t before = received_.size();
  received_.resize(before + static_cast<std::size_t>(socket_.bytesAvailable()));
  const qint64 n = socket_.read(received_.data() + before, static_cast<qint64>(received_.size() - before));
  if (attempt != attempt_) return;  // on_error has heard why
  received_.resize(before + static_cast<std::size_t>(std::max<qint64>(n, 0)));
  while (take_frame()) {
  }
  if (attempt != attempt_) return;
  received_.erase(0, taken_);
  taken_ = 0;
}

/// The next whole frame; false when there is none, or the connection is gone.
bool Client::take_frame() {
  const std::string_view rest = std::string_view{received_}.substr(taken_);
  if (rest.size() < FrameView::header_size) return false;
  const std::size_t length = qFromBigEndian<quint32>(rest.data());
  if (length == 0 || length > options_.max_body) return fail(Reason::malformed), false;
  if (rest.size() < FrameView::header_size + length) return false;
  taken_ += FrameView::header_size + length;
  const Stage stage = std::exchange(stage_, Stage::idle);  // the application may send the next request at once
  const std::uint64_t attempt = attempt_;
  const Received received = handlers_.received(FrameView{rest.substr(0, FrameView::header_size + length)});
  if (attempt != attempt_) return false;
  if (stage_ != Stage::idle) return true;
  switch (received) {
    case Received::incomplete:
      stage_ = stage;
      return true;
    case Received::broken:
      stage_ = stage;
      return fail(Reason::malformed), false;
    case Received::answered:
      deadline_.stop();
  }
  return true;
}

void Client::on_error(QAbstractSocket::SocketError error) {
  if (!open_ || stage_ == Stage::resolve) return;
  if (stage_ != Stage::connect) {
    // Qt says the same for a reset (QNativeSocketEngine reads an end there).
    return fail(error == QAbstractSocket::RemoteHostClosedError ? Reason::closed : Reason::reset);
  }
  if (refusal_ == Reason::other) refusal_ = connect_reason(error);
  addresses_.isEmpty() ? fail(refusal_) : next_.start_after({});
}

void Client::begin(Stage stage) {
  stage_ = stage;
  arm();
}

void Client::arm() { deadline_.start_after(began_ + options_.limits.limit_of(stage_) - Clock::now()); }

/// Returns the stage. Of a write it is looked up when it matters, for a slot would cost each request another turn.
Stage Client::stage() const { return stage_ == Stage::write && socket_.bytesToWrite() == 0 ? Stage::answer : stage_; }

void Client::on_deadline() {
  stage_ = stage();
  if (stage_ == Stage::idle) return;
  began_ + options_.limits.limit_of(stage_) <= Clock::now() ? fail(Reason::timed_out) : arm();
}

void Client::fail(Reason reason) {
  const Error error{stage(), reason};
  close();
  handlers_.failed(error);
}

void Client::close() {
  ++attempt_;
  open_ = false;
  stage_ = Stage::idle;
  deadline_.stop();
  next_.stop();
  socket_.abort();
  received_.clear();
  taken_ = 0;
}

}  // namespace netdyno::client::qt_signals
