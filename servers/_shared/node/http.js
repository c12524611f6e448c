// HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, as
// the contract is about bytes: node:http would add headers of its own and answer malformed requests its own way.
'use strict';

const { MessageSession, NOTHING } = require('./session.js');

const MAX_HEAD = 16 * 2 ** 10;
const END_OF_HEAD = '\r\n\r\n';
const CR = 0x0d;
const LF = 0x0a;
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/;
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const VALUE = /^[^\0\r\n]*$/;
const OK = '200 OK';
const TEXT = 'text/plain';
const BAD_REQUEST = { status: '400 Bad Request' };
const NOT_IMPLEMENTED = { status: '501 Not Implemented' };

/** The time as a header has it (RFC 9110, 5.6.7), made once a second. */
const clock = { second: -1, text: '' };
function date() {
  const now = Date.now();
  const second = Math.floor(now / 1000);
  if (second !== clock.second) Object.assign(clock, { second, text: new Date(now).toUTCString() });
  return clock.text;
}

/** Without the blanks and tabs around it, and nothing else (String.trim knows more). */
function trim(text) {
  let from = 0;
  let to = text.length;
  while (from < to && (text[from] === ' ' || text[from] === '\t')) from += 1;
  while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to -= 1;
  return text.slice(from, to);
}

/**
 * What of a head's lines matters here: {status, target, connection}, status OK when it is good. The connection is what
 * a reply says of it: 'close', 'keep-alive', or nothing where it stays by default. `takesPosts`: of the workload web.
 */
function parseHead(head, takesPosts) {
  const [first, ...lines] = head.split('\r\n');
  const [, method, target, minor] = REQUEST_LINE.exec(first) ?? [];
  if (method === undefined) return BAD_REQUEST;
  const posts = takesPosts && method === 'POST';
  const said = { hosts: 0, hasBody: false, bodySize: posts ? 0 : null, connection: [] };
  for (const line of lines) {
    const colon = line.indexOf(':');
    const value = line.slice(colon + 1);
    if (colon < 0 || !TOKEN.test(line.slice(0, colon)) || !VALUE.test(value)) return BAD_REQUEST;
    readHeader(line.slice(0, colon).toLowerCase(), trim(value), said);
  }
  if (said.hosts > 1 || (said.hosts === 0 && minor === '1')) return BAD_REQUEST;
  if (method !== 'GET' && method !== 'HEAD' && !posts) return NOT_IMPLEMENTED; // RFC 9110, 9.1: also with a body
  if (said.hasBody || Number.isNaN(said.bodySize)) return BAD_REQUEST;
  const connection = connectionOf(said.connection, minor === '1');
  return { status: OK, target, wantsBody: method !== 'HEAD', posts, bodySize: said.bodySize ?? 0, connection };
}

function readHeader(name, value, said) {
  if (name === 'host') said.hosts += 1;
  if (name === 'connection') said.connection.push(...value.split(',').map((item) => trim(item).toLowerCase()));
  if (name === 'content-length' && said.bodySize !== null) said.bodySize = parseNumber(value, '') ?? NaN;
  else if (name === 'transfer-encoding' || (name === 'content-length' && value !== '0')) said.hasBody = true;
}

/** The whole number before a unit; null where it is none. */
function parseNumber(text, unit) {
  const digits = text.endsWith(unit) ? text.slice(0, text.length - unit.length) : '';
  return /^\d+$/.test(digits) ? Number(digits) : null;
}

function connectionOf(tokens, stays) {
  if (tokens.includes('close')) return 'close';
  if (stays) return '';
  return tokens.includes('keep-alive') ? 'keep-alive' : 'close';
}

/** `framing` is the header that says where the body ends. */
function makeHead(status, type, framing, connection) {
  const header = connection === '' ? '' : `Connection: ${connection}\r\n`;
  const head = `HTTP/1.1 ${status}\r\nDate: ${date()}\r\nContent-Type: ${type}\r\n${framing}\r\n${header}\r\n`;
  return Buffer.from(head, 'latin1');
}

class HttpSession extends MessageSession {
  maxHead = Math.min(MAX_HEAD, this.options.maxFrame);
  takesPosts = false;

  consume(bytes) {
    let at = 0;
    while (!this.closed) {
      while (bytes[at] === CR && bytes[at + 1] === LF) at += 2; // RFC 9112, 2.2
      const end = bytes.indexOf(END_OF_HEAD, at, 'latin1');
      // The last bytes of an incomplete head may be the beginning of its end, which does not count.
      const tooLong = end < 0 ? bytes.length - at >= this.maxHead + END_OF_HEAD.length : end - at > this.maxHead;
      if (!tooLong && end < 0) break;
      const request = tooLong ? BAD_REQUEST : parseHead(bytes.latin1Slice(at, end), this.takesPosts);
      const whole = end + END_OF_HEAD.length + (request.bodySize ?? 0);
      if (request.bodySize <= this.options.maxFrame && bytes.length < whole) break;
      this.#serve(request);
      at = whole;
    }
    return at;
  }

  #serve(request) {
    if (request.status !== OK || request.bodySize > this.options.maxFrame || !this.answer(request)) {
      this.#write(request.status === OK ? BAD_REQUEST.status : request.status, TEXT, '', false, 'close');
      this.protocolError();
      return;
    }
    this.totals.requests += 1;
    if (request.connection === 'close') this.close();
  }

  /** Adds the work for a request and its reply. False: it is refused. */
  answer(request) {
    this.effects.serve(this.options.serviceKind, this.options.serviceTime);
    this.respond(request, TEXT, request.target);
    return true;
  }

  respond({ wantsBody, connection }, type, body) {
    this.#write(OK, type, body, wantsBody, connection);
  }

  /** Begins a reply in chunks (RFC 9112, 7.1), each of which is added by addChunk, the last one empty. */
  beginChunks({ connection }, type) {
    this.effects.reply(makeHead(OK, type, 'Transfer-Encoding: chunked', connection), NOTHING);
  }

  addChunk(text) {
    this.effects.reply(Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`, 'latin1'), NOTHING);
  }

  #write(status, type, body, withBody, connection) {
    const head = makeHead(status, type, `Content-Length: ${body.length}`, connection);
    this.effects.reply(head, withBody ? Buffer.from(body, 'latin1') : NOTHING);
  }
}

module.exports = { HttpSession, TEXT, parseNumber };
