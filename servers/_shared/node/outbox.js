// What waits to be sent to one client.
'use strict';

/** What a frame that waits counts beside its bytes (protocol/WIRE.md): one of a byte takes far more to keep. */
const OVERHEAD = 128;

/** All that waits leaves in one write; but split each part, or single each frame, in a write of its own. While the socket holds bytes
 * that the kernel did not take, nothing is added to them, as Node would join it. */
class Outbox {
  /** Counts into `totals` what was written. */
  constructor(socket, options, totals) {
    this.socket = socket;
    this.oneByOne = options.split || options.single; // a part at a time: gathered, that is a frame
    this.limit = options.outboxLimit;
    this.overhead = options.split ? OVERHEAD / 2 : OVERHEAD; // of a part: split, a frame has two
    this.totals = totals;
    this.waiting = []; // parts, after those of `sending`
    this.sending = []; // parts from `next` on
    this.next = 0;
    this.size = 0; // bytes of both
    this.held = 0; // by both, and by what the socket holds because the kernel did not take it
    this.onEmpty = null; // called once, when a write has left nothing
  }

  /** Nothing waits and nothing is with the socket. */
  get empty() {
    return this.size === 0 && this.socket.writableLength === 0;
  }

  /** False, and nothing is taken, when more than the limit would wait: a slow reader. One frame is always taken. */
  offer(parts, size) {
    if (!this.#hasRoom(size)) this.flush();
    if (!this.#hasRoom(size)) return false;
    this.push(parts, size);
    return true;
  }

  #hasRoom(size) {
    return this.held === 0 || this.held + size + OVERHEAD <= this.limit;
  }

  push(parts, size) {
    for (const part of parts) this.waiting.push(part);
    this.size += size;
    this.held += size + parts.length * this.overhead;
  }

  /** Writes as long as the kernel takes everything at once. */
  flush() {
    while (this.size > 0 && this.socket.writableLength === 0 && !this.socket.destroyed) {
      if (this.next === this.sending.length) {
        this.sending = this.waiting;
        this.waiting = [];
        this.next = 0;
      }
      this.#write(this.oneByOne ? [this.sending[this.next++]] : this.#rest());
    }
  }

  #rest() {
    this.next = this.sending.length;
    return this.sending;
  }

  #write(parts) {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    const count = parts.length;
    this.size -= size;
    const held = size + count * this.overhead;
    let taken = false; // at once, by the kernel: what Node tells only after this turn
    this.socket.cork(); // several become one writev(2)
    for (const part of parts.slice(0, -1)) this.socket.write(part);
    this.socket.write(parts.at(-1), (error) => this.#written(size, taken ? 0 : held, error));
    this.socket.uncork();
    taken = this.socket.writableLength === 0;
    if (taken) this.held -= held;
  }

  #written(size, held, error) {
    if (error || this.socket.destroyed) return;
    this.held -= held;
    this.totals.bytes_out += size;
    this.flush();
    if (!this.empty || !this.onEmpty) return;
    const then = this.onEmpty;
    this.onEmpty = null;
    then();
  }
}

module.exports = { Outbox };
