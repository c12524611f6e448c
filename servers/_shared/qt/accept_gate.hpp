#pragma once

#include <QTcpServer>
#include <QTimer>
#include <functional>
#include <vector>

#include "lib/net/accept.hpp"

namespace netdyno::qt {

/// Opens `count` descriptors, or as many as it can. Closing them makes room for others. Qt and GLib end the whole
/// process where a thread's event loop cannot have the one it needs (qFatal in QEventDispatcherUNIXPrivate, g_error in
/// g_wakeup_new), so threads are started only where all of these could be opened.
std::vector<UniqueFd> spare_descriptors(std::size_t count);

/// Lets a QTcpServer accept only when there is room for one more client, its descriptors included; others wait
/// in the kernel's queue. Main thread only.
class AcceptGate {
 public:
  /// `descriptors` is what a client takes, its socket included; `room` says whether there is room for it otherwise.
  AcceptGate(
      QTcpServer& server, std::size_t descriptors, std::function<bool()> room = [] { return true; });

  /// To be called when the server listens, and whenever a client has been taken in with all its descriptors: opens the
  /// gate for the next one, or closes it and checks again after a while.
  void update();
  /// The same, but after some dozens in a row the event loop has its turn first. QTcpServer itself accepts all that
  /// wait, however many come meanwhile.
  void update_in_turn();
  /// Accepts none until the next update.
  void close();

 private:
  static constexpr int most_in_a_row = 64;

  void close_for_a_while();

  QTcpServer& server_;
  const std::size_t descriptors_;
  const std::function<bool()> room_;
  const int most_pending_;
  std::vector<UniqueFd> spare_;  // too few for a client, kept until there are more
  QTimer again_;
  int in_a_row_ = 0;
};

}  // namespace netdyno::qt
