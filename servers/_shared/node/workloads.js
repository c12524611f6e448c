// One session per workload, by protocol/WIRE.md.
'use strict';

const { HttpSession } = require('./http.js');
const { encodeResponse, parseRequest } = require('./protobuf.js');
const { MessageSession, NOTHING, Session } = require('./session.js');
const { WebSession } = require('./web.js');

const NEWLINE = 0x0a;
const HEADER = 4; // bytes of a frame's length
const MAX_WORKLOAD_US = 10_000_000;

/** Bytes as they come. What one read brought counts as one request: an echo server sees no messages. */
class EchoSession extends Session {
  onBytes(bytes) {
    this.totals.requests += 1;
    this.effects.reply(NOTHING, Buffer.from(bytes));
  }

  onEnd() {}
}

/** Source D's `process`: what was read is split by line before it is echoed. */
class LinesSession extends Session {
  onBytes(bytes) {
    for (let at = 0; at < bytes.length && !this.closed; ) {
      const newline = bytes.indexOf(NEWLINE, at);
      const piece = bytes.subarray(at, newline < 0 ? bytes.length : newline + 1);
      at += piece.length;
      if (this.pending.length + piece.length > this.options.maxFrame) this.protocolError();
      else if (newline < 0) this.pending.append(piece);
      else this.#echoLine(piece);
    }
  }

  #echoLine(tail) {
    this.totals.requests += 1;
    if (this.pending.length === 0) {
      this.effects.reply(NOTHING, Buffer.from(tail));
      return;
    }
    this.pending.append(tail);
    this.effects.reply(NOTHING, this.pending.copy());
    this.pending.clear();
  }

  onEnd() {
    if (this.pending.length > 0) this.#echoLine(NOTHING);
  }
}

/** Length-prefixed messages; subclasses serve one body (onBody). */
class FramedSession extends MessageSession {
  consume(bytes) {
    let at = 0;
    while (bytes.length - at >= HEADER && !this.closed) {
      const size = bytes.readUInt32BE(at);
      if (size === 0 || size > this.options.maxFrame) {
        this.protocolError();
        break;
      }
      this.wanted = HEADER + size;
      if (bytes.length - at < this.wanted) return at;
      this.onBody(bytes.subarray(at + HEADER, at + this.wanted));
      at += this.wanted;
    }
    this.wanted = HEADER;
    return at;
  }
}

/** Source A's request and response: Protobuf, parsed and serialised, with an optional service time. */
class RpcSession extends FramedSession {
  onBody(body) {
    const request = parseRequest(body);
    if (request === null || request.workload < 0 || request.workload > MAX_WORKLOAD_US) {
      this.protocolError();
      return;
    }
    this.totals.requests += 1;
    this.effects.serve(this.options.serviceKind, this.options.serviceTime + request.workload * 1000);
    const frame = encodeResponse(request, HEADER);
    frame.writeUInt32BE(frame.length - HEADER);
    if (this.options.split) this.effects.reply(frame.subarray(0, HEADER), frame.subarray(HEADER));
    else this.effects.reply(NOTHING, frame);
  }
}

/** Each message becomes one frame that all recipients share. */
class ChatSession extends FramedSession {
  onBody(body) {
    this.totals.requests += 1;
    const frame = Buffer.allocUnsafe(HEADER + body.length);
    frame.writeUInt32BE(body.length);
    body.copy(frame, HEADER);
    this.effects.broadcast(frame, HEADER);
  }
}

const sessions = {
  echo: EchoSession,
  lines: LinesSession,
  rpc: RpcSession,
  chat: ChatSession,
  http: HttpSession,
  web: WebSession,
};

/** The session of the workload that the options name. */
function makeSession(options, totals) {
  return new sessions[options.workload](options, totals);
}

module.exports = { makeSession };
