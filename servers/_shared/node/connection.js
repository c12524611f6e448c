// One client: its socket, its session, and the effects that are being carried out. All on the one thread.
'use strict';

const net = require('node:net');
const { performance } = require('node:perf_hooks');

const { burnCpu, whenQuiet } = require('./loop.js');
const { Outbox } = require('./outbox.js');
const { NOTHING, newTotals } = require('./session.js');
const { makeSession } = require('./workloads.js');

const BURN_SLICE_MS = 10;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const LINGER_MS = 1000; // that a connection closed because of what the peer sent may take to deliver the last replies

/** The accepted connection as a socket that reads into `buffer` and calls `onRead(bytes)`; where that is false, the
 * next read waits for resume(). net.Server cannot be asked for it (`onread` is for sockets that one makes); without it
 * Node reads up to 64 KiB at a time. So the handle moves to a socket of our own; it has no public name. */
function withReadBuffer(accepted, buffer, onRead) {
  const handle = accepted._handle;
  accepted._handle = null;
  accepted.destroy(); // an empty shell now
  const callback = (size) => onRead(buffer.subarray(0, size));
  return new net.Socket({ handle, allowHalfOpen: true, onread: { buffer, callback } });
}

class Connection {
  /** `server` has options, totals, readBuffer, broadcast(parts, sender), left(connection) and perhaps a backend. */
  constructor(accepted, server) {
    this.server = server;
    this.session = makeSession(server.options, server.totals);
    this.effects = []; // to be carried out, from `next` on
    this.next = 0;
    this.reads = 0;
    this.busy = false; // an effect takes time: what is read meanwhile is held
    this.waits = false; // for its time to pass: reading goes on, so that a reset is noticed
    this.relaying = false; // its broadcasts are on their way to other processes: it is not read, which bounds them
    this.held = undefined; // one read, for then reading pauses
    this.ended = false; // by the peer
    this.closing = false;
    this.stopping = false;
    this.timer = undefined;
    const onRead = (bytes) => this.#receive(bytes);
    this.encryption = server.options.encrypt?.(accepted, onRead);
    this.socket = this.encryption?.socket ?? withReadBuffer(accepted, server.readBuffer, onRead);
    this.outbox = new Outbox(this.socket, server.options, this.encryption ? newTotals() : server.totals);
    this.socket.on('end', () => this.#peerEnded());
    this.socket.on('error', (error) => this.#failed(error));
    this.socket.on('close', () => this.#closed());
  }

  /** Takes a frame of `size` bytes into the outbox, which the caller flushes; closes this reader when too much waits
   * for it already. True when it was taken. */
  deliver(parts, size) {
    if (this.closing || this.socket.destroyed) return false;
    if (this.outbox.offer(parts, size)) return true;
    this.server.totals.slow_closed += 1;
    this.socket.destroy();
    return false;
  }

  /** The broadcasts of its last read are with the other processes. */
  relayed() {
    this.relaying = false;
    if (this.busy) this.#goOn();
  }

  /** Ends the input at what has arrived. Node has no shutdown(SHUT_RD), but nothing is left once a turn of the loop
   * brings nothing. */
  stopReceiving() {
    this.stopping = true;
    whenQuiet(
      () => this.reads,
      () => {
        if (this.busy || this.socket.destroyed) return; // #goOn comes back here
        if (!this.closing) this.#endSession();
        else if (this.outbox.empty) this.#linger();
      },
    );
  }

  /** Takes what one read brought; false: do not read on. */
  #receive(bytes) {
    this.reads += 1;
    if (this.busy) {
      this.held = Buffer.from(bytes);
      return false;
    }
    return this.#start(this.#process(bytes)) || this.waits;
  }

  /** The session's effects of what one read brought. */
  #process(bytes) {
    if (!this.encryption) return this.session.receive(bytes);
    this.encryption.count(this.server.totals);
    return this.session.take(bytes);
  }

  /** libuv tells of a reset as of an end where bytes came with it, but an empty write fails then. Over TLS a write may
   * never end once one of the handshake has failed, so the kernel is asked. */
  #peerEnded() {
    if (this.encryption) this.#endInput(this.encryption.isReset());
    else this.socket.write(NOTHING, (error) => this.#endInput(error));
  }

  #endInput(isReset) {
    if (isReset) this.socket.destroy();
    if (this.socket.destroyed) return;
    this.ended = true;
    if (!this.busy) this.#endSession();
  }

  #endSession() {
    if (!this.#start(this.session.end())) this.socket.pause();
  }

  #start(effects) {
    this.effects = effects;
    this.next = 0;
    return this.#carryOut();
  }

  /** Carries out effects until one takes time; true when none is left. */
  #carryOut() {
    this.busy = true;
    while (this.next < this.effects.length && !this.socket.destroyed)
      if (!this.#carryOutOne(this.effects[this.next++])) return false;
    if (this.relaying) return false;
    this.busy = false;
    return true;
  }

  /** Goes on after what took time. */
  #goOn() {
    this.waits = false;
    this.encryption?.count(this.server.totals);
    if (this.socket.destroyed || !this.#carryOut()) return;
    if (this.held !== undefined) {
      const { held } = this;
      this.held = undefined;
      if (!this.#start(this.#process(held))) {
        if (this.waits) this.socket.resume();
        return;
      }
    }
    if (!this.ended) this.socket.resume();
    else if (!this.session.closed) this.#endSession();
    if (this.stopping) this.stopReceiving();
  }

  /** False when it takes time; #goOn follows. */
  #carryOutOne({ kind, parts, duration }) {
    switch (kind) {
      case 'write':
        return this.#write(parts.length === 1 ? parts[0] : Buffer.concat(parts));
      case 'broadcast':
        this.server.broadcast(parts, this);
        return true;
      case 'wait':
        return this.server.backend ? this.#ask(duration) : this.#wait(performance.now() + duration / 1e6);
      case 'until':
        return this.#wait(duration / 1e6);
      case 'burn':
        return this.#burn(duration / 1e6);
      case 'close':
        this.#finish();
        return true;
      default:
        throw new Error(`an effect that is not known: ${kind}`);
    }
  }

  #write(bytes) {
    this.outbox.push([bytes], bytes.length);
    this.outbox.flush();
    if (this.outbox.empty) return true;
    this.outbox.onEmpty = () => this.#goOn();
    return false;
  }

  /** A timer counts whole milliseconds and may come a little early; then there is another one. */
  #wait(until) {
    this.waits = true;
    const left = Math.min(Math.ceil(until - performance.now()), LONGEST_TIMER_MS);
    this.timer = setTimeout(() => (performance.now() < until ? this.#wait(until) : this.#goOn()), left);
    return false;
  }

  /** Reading goes on meanwhile, as in a wait. */
  #ask(duration) {
    this.waits = true;
    this.server.backend.ask(duration, () => this.#goOn());
    return false;
  }

  /** Long work is cut into slices, between which the loop turns: a signal could not be seen otherwise. */
  #burn(ms) {
    burnCpu(Math.min(ms, BURN_SLICE_MS));
    if (ms <= BURN_SLICE_MS) return true;
    setImmediate(() => {
      if (this.socket.destroyed || this.#burn(ms - BURN_SLICE_MS)) this.#goOn();
    });
    return false;
  }

  #finish() {
    this.closing = true;
    this.outbox.flush();
    if (this.outbox.empty) this.#linger();
    else this.outbox.onEmpty = () => this.#linger();
  }

  /** Ends our stream and reads on (the session ignores it) until the peer ends its own: a close with unread bytes
   * resets the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6). */
  #linger() {
    if (this.stopping) {
      this.socket.end(() => this.socket.destroy());
    } else {
      this.socket.end();
      this.timer = setTimeout(() => this.socket.destroy(), LINGER_MS);
    }
  }

  /** The peer is gone, which concerns no other client, and 'close' follows; or it speaks no TLS. */
  #failed(error) {
    if (!this.encryption?.isRefused(error)) return;
    if (!this.session.closed) this.session.protocolError();
    this.socket.destroy();
  }

  #closed() {
    clearTimeout(this.timer);
    this.encryption?.count(this.server.totals);
    this.session.discard();
    this.server.left(this);
  }
}

module.exports = { Connection };
