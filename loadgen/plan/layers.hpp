#pragma once

#include <string>
#include <vector>

namespace netdyno {
class CommandLine;
}

/// The layers that may lie between a connection and its messages.
namespace netdyno::load {

/// `https://`, `wss://` and `tls://`.
struct TlsOptions {
  bool on = false;
  bool insecure = false;    // any certificate will do
  std::string authorities;  // a file of certificates; empty: the system's
  std::string certificate;  // a file with the client's own, and those between it and its authority; empty: it has none
  std::string key;          // a file with the key of that; empty: it is in the same file
  bool reuse = false;       // a handshake takes up the session of one before
};

/// `ws://` and `wss://`.
struct WebSocketRequest {
  std::string target;
  std::vector<std::string> headers;  // "name: value", of the handshake
};

void add_tls_options(CommandLine& line, TlsOptions& tls);
/// Names what of the command line contradicts itself; empty when nothing does.
std::string tls_contradiction(const CommandLine& line, const TlsOptions& tls);

}  // namespace netdyno::load
