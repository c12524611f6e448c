// The work of one connection without any I/O: bytes in, effects out; what lib/session/session.hpp is to the C++ servers.
'use strict';

const v8 = require('node:v8');
const vm = require('node:vm');

const NOTHING = Buffer.alloc(0);
const BLOCK = 256 * 2 ** 10; // from the system and back to it: MALLOC_MMAP_THRESHOLD_ in server.json
const MOST_SPARE = 16;
const WORTH_COLLECTING = 8 * 2 ** 20;
const COLLECT_AFTER_MS = 500;
const spare = []; // blocks that are not in use

/** The counts of every server. */
function newTotals() {
  return { requests: 0, bytes_in: 0, bytes_out: 0, connections: 0, protocol_errors: 0, slow_closed: 0 };
}

/** The effects that a session requests, in order: each effect is {kind, ...}.
 *
 *   write      parts: buffers that leave in one write
 *   broadcast  parts: a frame for the audience, a buffer per write
 *   wait       duration, ns, to pass without holding up other connections
 *   until      duration, ns of performance.now(), the same
 *   burn       duration, ns, to keep the core busy
 *   close      once the writes before it are sent
 *
 * Buffers belong to the effect: they are no views into what the session was given, which the next read overwrites.
 */
class Effects {
  constructor(split) {
    this.split = split;
    this.list = [];
  }

  /** A reply of two parts (the first may be empty). Gathered: joins the write before it. Split: a write per part. */
  reply(header, body) {
    if (header.length > 0) this.#write(header);
    if (body.length > 0) this.#write(body);
  }

  #write(part) {
    const last = this.list.at(-1);
    if (!this.split && last?.kind === 'write') last.parts.push(part);
    else this.list.push({ kind: 'write', parts: [part] });
  }

  /** A frame with its header of `headerSize` bytes. */
  broadcast(frame, headerSize) {
    const parts = this.split ? [frame.subarray(0, headerSize), frame.subarray(headerSize)] : [frame];
    this.list.push({ kind: 'broadcast', parts });
  }

  /** Service time of `kind` wait or burn; nothing is added for a duration of 0. */
  serve(kind, duration) {
    if (duration > 0) this.list.push({ kind, duration });
  }

  close() {
    this.list.push({ kind: 'close' });
  }

  /** Hands over all effects so far. */
  take() {
    const taken = this.list;
    this.list = [];
    return taken;
  }
}

/** Has V8 collect when much was let go of: without new objects it would not for hours, and it sees only the small objects
 * that stand for blocks. */
const collector = {
  dropped: 0,
  due: false,

  drop(size) {
    this.dropped += size;
    if (this.dropped < WORTH_COLLECTING || this.due) return;
    this.due = true;
    setTimeout(() => this.collect(), COLLECT_AFTER_MS).unref();
  },

  collect() {
    this.dropped = 0;
    this.due = false;
    v8.setFlagsFromString('--expose-gc');
    vm.runInNewContext('gc')();
  },
};

/** Bytes of a message that is not complete yet. They lie in blocks, so nothing is copied when more comes. Blocks are
 * used again: garbage of buffers may pile up to 64 MiB before V8 collects it. */
class Pending {
  blocks = []; // all but the last are full
  room = 0; // in the last
  length = 0;

  clear() {
    for (const block of this.blocks) {
      if (block.length === BLOCK && spare.length < MOST_SPARE) spare.push(block);
      else collector.drop(block.length);
    }
    this.blocks = [];
    this.room = 0;
    this.length = 0;
  }

  append(bytes) {
    const fits = Math.min(this.room, bytes.length);
    if (fits > 0) this.#fill(this.blocks.at(-1), bytes.subarray(0, fits));
    if (fits < bytes.length) this.#addBlock(bytes.subarray(fits));
  }

  /** The first is as large as it must be: it is mostly the only one. */
  #addBlock(bytes) {
    const own = this.length === 0 || bytes.length > BLOCK;
    const block = own ? Buffer.allocUnsafeSlow(bytes.length) : (spare.pop() ?? Buffer.allocUnsafeSlow(BLOCK));
    this.blocks.push(block);
    this.room = block.length;
    this.#fill(block, bytes);
  }

  #fill(block, bytes) {
    bytes.copy(block, block.length - this.room);
    this.room -= bytes.length;
    this.length += bytes.length;
  }

  /** Takes so many bytes off the front. */
  drop(size) {
    if (size === 0) return;
    const rest = this.view().subarray(size);
    this.clear();
    if (rest.length > 0) this.append(rest);
  }

  copy() {
    return Buffer.concat(this.blocks, this.length);
  }

  /** All of it in one piece, valid until it changes. */
  view() {
    if (this.blocks.length > 1) {
      const whole = this.copy();
      this.clear();
      this.blocks = [whole];
      this.length = whole.length;
    }
    return this.length > 0 ? this.blocks[0].subarray(0, this.length) : NOTHING;
  }
}

/** Subclasses say what bytes mean (onBytes) and what is still owed when the peer ends its stream (onEnd). */
class Session {
  pending = new Pending(); // of a message that is not complete

  constructor(options, totals) {
    this.options = options;
    this.totals = totals;
    this.closed = false;
    this.effects = new Effects(options.split);
  }

  /** Takes the next bytes of the stream, in any slicing; returns what is to be done. After a close they are ignored. */
  receive(bytes) {
    this.totals.bytes_in += bytes.length;
    return this.take(bytes);
  }

  /** The same of bytes that were decrypted, which are counted as they come. */
  take(bytes) {
    if (!this.closed) this.onBytes(bytes);
    return this.effects.take();
  }

  /** The peer ended its stream: what is still owed, and a close. */
  end() {
    if (this.closed) return [];
    this.onEnd();
    if (!this.closed) this.close();
    return this.effects.take();
  }

  /** The connection is gone. */
  discard() {
    this.closed = true;
    this.pending.clear();
  }

  close() {
    this.closed = true;
    this.effects.close();
  }

  protocolError() {
    this.totals.protocol_errors += 1;
    this.close();
  }
}

/** A session whose messages may be cut anywhere. Subclasses take complete messages off the front (`consume` returns how
 * many bytes those were); the rest is kept until more comes. */
class MessageSession extends Session {
  wanted = 0; // bytes without which trying again is of no use

  onBytes(bytes) {
    if (this.pending.length === 0) {
      const consumed = this.consume(bytes);
      if (consumed < bytes.length && !this.closed) this.pending.append(bytes.subarray(consumed));
      return;
    }
    this.pending.append(bytes);
    if (this.pending.length < this.wanted) return;
    const consumed = this.consume(this.pending.view());
    this.pending.drop(this.closed ? this.pending.length : consumed);
  }

  /** A stream must not end inside a message. */
  onEnd() {
    if (this.pending.length > 0) this.protocolError();
  }
}

module.exports = { MessageSession, NOTHING, Session, newTotals };
