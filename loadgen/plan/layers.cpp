#include "loadgen/plan/layers.hpp"

#include "lib/cli/option_values.hpp"

namespace netdyno::load {

void add_tls_options(CommandLine& line, TlsOptions& tls) {
  line.add_flag("--insecure", tls.insecure, "https://, wss:// and tls://: take any certificate");
  line.add_text("--cacert", tls.authorities,
                "https://, wss:// and tls://: the authorities that are trusted (default: the system's)")
      .type_name("FILE");
  line.add_text("--cert", tls.certificate,
                "https://, wss:// and tls://: the client's own certificate, in PEM, where the server asks for one")
      .type_name("FILE");
  line.add_text("--key", tls.key, "with --cert: its private key, in PEM (default: in the file of the certificate)")
      .type_name("FILE");
  add_choice(line, "--tls-reuse", tls.reuse, {{"on", true}, {"off", false}},
             "https://, wss:// and tls://: resume an earlier session where the server allows it (default off: each "
             "handshake is a full one)");
}

std::string tls_contradiction(const CommandLine& line, const TlsOptions& tls) {
  if (tls.on) {
#if !defined(NETDYNO_WITH_TLS)
    return "url: this program was built without OpenSSL, which TLS needs: install libssl-dev and build again";
#endif
    if (line.given("--key") && !line.given("--cert")) return "--key goes with --cert";
    return tls.insecure && line.given("--cacert") ? "--insecure and --cacert: leave one of them out" : "";
  }
  for (const char* name : {"--insecure", "--cacert", "--cert", "--key", "--tls-reuse"})
    if (line.given(name)) return std::string{name} + " is for https://, wss:// and tls://";
  return {};
}

}  // namespace netdyno::load
