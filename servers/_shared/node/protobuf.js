// WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone.
'use strict';

const VARINT = 0;
const I64 = 1;
const LEN = 2;
const START_GROUP = 3;
const END_GROUP = 4;
const I32 = 5;
const MAX_DEPTH = 100; // as Google's parsers have it: nested groups must not exhaust the stack
const LONGEST_NUMBER = 70; // bits, 7 in each byte
const LONGEST_LENGTH = 35; // and tag

/** Bytes that are no Protobuf. */
class MalformedError extends Error {}

/** Reads fields one after the other: `number` and `kind` of the last, its `value` (VARINT) or `from`, `to` (LEN). */
class FieldReader {
  constructor(bytes, from = 0, end = bytes.length, depth = 0) {
    this.bytes = bytes;
    this.at = from;
    this.end = end;
    this.depth = depth;
  }

  /** False when there are no more. Groups are skipped. Throws MalformedError. */
  next() {
    if (this.at >= this.end) return false;
    this.#tag();
    if (this.kind === END_GROUP) throw new MalformedError('the end of a group that never began');
    this.#value(this.depth);
    return true;
  }

  #tag() {
    const tag = this.#varint(LONGEST_LENGTH);
    this.number = tag >>> 3;
    this.kind = tag & 7;
    if (this.number === 0 || this.high !== 0) throw new MalformedError('field number');
  }

  #value(depth) {
    switch (this.kind) {
      case VARINT:
        this.value = this.#varint(LONGEST_NUMBER);
        return;
      case I64:
        return this.#take(8);
      case I32:
        return this.#take(4);
      case LEN: {
        const size = this.#varint(LONGEST_LENGTH);
        return this.#take(this.high === 0 ? size : Infinity);
      }
      case START_GROUP:
        return this.#skipGroup(depth);
      default:
        throw new MalformedError('wire type');
    }
  }

  #skipGroup(depth) {
    const group = this.number;
    if (depth >= MAX_DEPTH) throw new MalformedError('groups too deep');
    for (;;) {
      this.#tag();
      if (this.kind === END_GROUP) break;
      this.#value(depth + 1);
    }
    if (this.number !== group) throw new MalformedError('the end of another group');
    this.kind = START_GROUP;
  }

  #take(size) {
    if (size > this.end - this.at) throw new MalformedError('a field that is cut off');
    this.from = this.at;
    this.at += size;
    this.to = this.at;
  }

  /** The lower 32 bits of a number of up to 64; the upper ones go to `high`. */
  #varint(longest) {
    let low = 0;
    this.high = 0;
    for (let shift = 0; shift < longest; shift += 7) {
      if (this.at >= this.end) throw new MalformedError('a number that is cut off');
      const byte = this.bytes[this.at++];
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift === 28) this.high = bits >>> 4;
      if (shift > 28) this.high |= shift < 63 ? bits << (shift - 32) : (bits & 1) << 31;
      if (byte < 0x80) return low >>> 0;
    }
    throw new MalformedError('a number of too many bytes');
  }
}

/** Merges the fields of a WorkRequest into `request`. */
function readRequest(fields, request) {
  while (fields.next()) {
    if (fields.kind === VARINT && fields.number === 1) request.jobId = fields.value;
    if (fields.kind === VARINT && fields.number === 2) request.workload = fields.value | 0;
    if (fields.kind === LEN && fields.number === 3) request.stamp = fields.bytes.subarray(fields.from, fields.to);
  }
}

/** The WorkRequest of a WorkMessage as {jobId, workload, stamp} (the stamp is a view), or null where the bytes do not
 * parse or hold no request. A repeated message is merged, and the last member of the oneof counts. */
function parseRequest(body) {
  const message = new FieldReader(body);
  let request = null;
  try {
    while (message.next()) {
      if (message.kind !== LEN || message.number > 2) continue;
      const inner = new FieldReader(body, message.from, message.to, 1);
      if (message.number === 1) {
        request ??= { jobId: 0, workload: 0, stamp: body.subarray(0, 0) };
        readRequest(inner, request);
      } else {
        while (inner.next()); // a response must parse too
        request = null;
      }
    }
  } catch (error) {
    if (error instanceof MalformedError) return null;
    throw error;
  }
  return request;
}

function varintSize(value) {
  let size = 1;
  for (let left = value >>> 7; left > 0; left >>>= 7) size += 1;
  return size;
}

/** Writes a number below 2^32 at `at`; returns the place after it. */
function writeVarint(bytes, value, at) {
  let left = value;
  for (; left > 0x7f; left >>>= 7) bytes[at++] = (left & 0x7f) | 0x80;
  bytes[at++] = left;
  return at;
}

/** WorkMessage{WorkRequest{workload}} in a frame with a header of so many bytes: it asks for a reply after so many
 * nanoseconds, in whole microseconds. */
function encodeQuestion(duration, headerSize) {
  const workload = Math.ceil(duration / 1000);
  const size = 1 + varintSize(workload);
  const frame = Buffer.alloc(headerSize + 2 + size);
  frame.writeUInt32BE(2 + size);
  frame[headerSize] = (1 << 3) | LEN;
  frame[headerSize + 1] = size;
  frame[headerSize + 2] = (2 << 3) | VARINT;
  writeVarint(frame, workload, headerSize + 3);
  return frame;
}

/** WorkMessage{WorkResponse{jobId, is_complete: true, stamp}}, preceded by `reserved` bytes for the caller. */
function encodeResponse({ jobId, stamp }, reserved) {
  const jobSize = jobId === 0 ? 0 : 1 + varintSize(jobId);
  const stampSize = stamp.length === 0 ? 0 : 1 + varintSize(stamp.length) + stamp.length;
  const size = jobSize + 2 + stampSize;
  const bytes = Buffer.allocUnsafe(reserved + 1 + varintSize(size) + size);
  bytes[reserved] = (2 << 3) | LEN;
  let at = writeVarint(bytes, size, reserved + 1);
  if (jobSize > 0) {
    bytes[at++] = (1 << 3) | VARINT;
    at = writeVarint(bytes, jobId, at);
  }
  bytes[at++] = (2 << 3) | VARINT;
  bytes[at++] = 1;
  if (stampSize > 0) {
    bytes[at++] = (3 << 3) | LEN;
    at = writeVarint(bytes, stamp.length, at);
    stamp.copy(bytes, at);
  }
  return bytes;
}

module.exports = { encodeQuestion, encodeResponse, parseRequest };
