// A Node.js process that serves: net sockets on its one event loop; a connection is a set of callbacks.
'use strict';

const net = require('node:net');

const { BackendPool } = require('./backend.js');
const { Connection } = require('./connection.js');
const lifecycle = require('./lifecycle.js');
const { whenQuiet } = require('./loop.js');
const { newTotals } = require('./session.js');

/** The server of one process. Subclasses pass on what reaches its members, or what it ends with. */
class Server {
  constructor(options) {
    this.options = options;
    this.backend = options.backend && new BackendPool(options);
    this.totals = newTotals();
    this.readBuffer = Buffer.allocUnsafeSlow(options.readBuffer); // shared: what a read brought is taken at once
    this.members = new Set();
    this.unflushed = new Set();
    this.stopping = false;
    this.listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: options.nodelay });
    this.listener.on('connection', (accepted) => this.#join(accepted));
  }

  /** Calls `ready(address)` once it listens, or `failed(reason)`. */
  start(ready, failed) {
    if (this.backend) this.backend.connect(() => this.#listen(ready, failed));
    else this.#listen(ready, failed);
  }

  #listen(ready, failed) {
    const { listen: address, backlog } = this.options;
    this.listener.once('error', (error) => failed(lifecycle.explainListenError(this.options, error)));
    this.listener.listen({ ...address, backlog }, () => {
      this.listener.removeAllListeners('error');
      this.listener.on('error', () => {}); // accept(2) failed: that concerns the peer alone, or what is scarce now
      ready(this.listener.address());
    });
  }

  #join(accepted) {
    this.totals.connections += 1;
    const connection = new Connection(accepted, this);
    this.members.add(connection);
    if (this.stopping) connection.stopReceiving();
  }

  broadcast(parts, sender) {
    this.deliver(parts, sender);
  }

  /** Frames leave at the end of the loop's turn, so that what several senders said in it is one write per recipient. */
  deliver(parts, sender) {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    for (const member of this.members)
      if ((member !== sender || this.options.toAll) && member.deliver(parts, size)) this.#flushLater(member);
  }

  #flushLater(member) {
    if (this.unflushed.size === 0) setImmediate(() => this.#flush());
    this.unflushed.add(member);
  }

  #flush() {
    const members = this.unflushed;
    this.unflushed = new Set();
    for (const member of members) member.outbox.flush();
  }

  /** Stops accepting (who is in the listen queue is let in), and ends every stream at what has arrived. */
  stop() {
    if (this.stopping) return;
    this.stopping = true;
    setTimeout(() => this.exit(), lifecycle.SHUTDOWN_GRACE_MS);
    for (const member of this.members) member.stopReceiving();
    whenQuiet(
      () => this.totals.connections,
      () => {
        this.listener.close();
        this.#exitIfAllGone();
      },
    );
  }

  left(connection) {
    this.members.delete(connection);
    this.#exitIfAllGone();
  }

  #exitIfAllGone() {
    if (this.stopping && !this.listener.listening && this.members.size === 0) this.exit();
  }

  exit() {
    lifecycle.printLine(this.totals);
    process.exit(0);
  }
}

module.exports = { Server };
