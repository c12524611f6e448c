// TLS between a socket and its session, by node:tls. Only a server that is to speak it loads this.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const { TLSSocket, createSecureContext } = require('node:tls');

/** Returns a function that encrypts an accepted connection, by the certificate and key in `file`. All processes of a
 * server have the same keys of tickets, as those of a tls.Server have: a client may take up its session with any. */
function load(file) {
  const pem = fs.readFileSync(file);
  const ticketKeys = createHash('sha384').update(pem).digest();
  const secureContext = createSecureContext({ key: pem, cert: pem, ticketKeys });
  return (accepted, onRead) => new Encryption(accepted, secureContext, onRead);
}

/** The encryption of one connection, whose plain text passes through `socket`. */
class Encryption {
  bytesRead = 0; // that are counted
  bytesWritten = 0;

  /** The socket calls `onRead(bytes)`; where that is false, the next read waits for resume(). */
  constructor(accepted, secureContext, onRead) {
    this.accepted = accepted;
    this.socket = new TLSSocket(accepted, { isServer: true, secureContext });
    this.socket._releaseControl(); // which tls.Server does after the handshake: only then each error is an event
    this.socket.on('data', (bytes) => {
      if (!onRead(bytes)) this.socket.pause();
    });
  }

  /** Adds the encrypted bytes since the last call; those are among them that libuv holds where the peer then resets. */
  count(totals) {
    const { bytesRead, bytesWritten } = this.accepted;
    totals.bytes_in += bytesRead - this.bytesRead;
    totals.bytes_out += bytesWritten - this.bytesWritten;
    this.bytesRead = bytesRead;
    this.bytesWritten = bytesWritten;
  }

  /** The peer has reset the connection, so that the kernel knows no peer. */
  isReset() {
    return this.accepted.remoteAddress === undefined;
  }

  /** What came is no TLS, or refuses ours; other errors are those of a socket. */
  isRefused({ code }) {
    return /^ERR_(SSL|TLS)_/.test(code);
  }
}

module.exports = { load };
