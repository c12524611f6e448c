// HTTP/1.1 GET with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, because the
// contract is about bytes: node:http would add headers of its own and answer malformed requests its own way.
'use strict';

const { MessageSession } = require('./session.js');

const MAX_HEAD = 16 * 2 ** 10;
const END_OF_HEAD = '\r\n\r\n';
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/;
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const REASONS = {
  200: 'OK',
  400: 'Bad Request',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
};

/** Without the blanks and tabs around it, and nothing else (String.trim knows more). */
function trim(text) {
  let from = 0;
  let to = text.length;
  while (from < to && (text[from] === ' ' || text[from] === '\t')) from += 1;
  while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to -= 1;
  return text.slice(from, to);
}

/** What of a head's lines matters here: {status, target, keepAlive}, status 200 when it is good. */
function parseHead(head) {
  const [first, ...lines] = head.split('\r\n');
  const [, method, target, minor] = REQUEST_LINE.exec(first) ?? [];
  if (method === undefined) return { status: 400 };
  const request = { status: 200, target, keepAlive: minor === '1' };
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon < 0 || !TOKEN.test(line.slice(0, colon))) return { status: 400 };
    readHeader(line.slice(0, colon).toLowerCase(), trim(line.slice(colon + 1)), request);
  }
  return method === 'GET' ? request : { status: 405 };
}

function readHeader(name, value, request) {
  const lists = (token) => value.split(',').some((item) => trim(item).toLowerCase() === token);
  if (name === 'connection' && lists('close')) request.keepAlive = false;
  if (name === 'transfer-encoding' || (name === 'content-length' && value !== '0')) request.status = 413;
}

class HttpSession extends MessageSession {
  maxHead = Math.min(MAX_HEAD, this.options.maxFrame);

  consume(bytes) {
    let at = 0;
    while (!this.closed) {
      const end = bytes.indexOf(END_OF_HEAD, at, 'latin1');
      // The last bytes of an incomplete head may be the beginning of its end, which does not count.
      const tooLong = end < 0 ? bytes.length - at >= this.maxHead + END_OF_HEAD.length : end - at > this.maxHead;
      if (tooLong) this.#refuse(431);
      else if (end < 0) break;
      else this.#serve(parseHead(bytes.latin1Slice(at, end)));
      at = end + END_OF_HEAD.length;
    }
    return at;
  }

  #serve({ status, target, keepAlive }) {
    if (status !== 200) {
      this.#refuse(status);
      return;
    }
    this.totals.requests += 1;
    this.effects.serve(this.options.serviceKind, this.options.serviceTime);
    this.#respond(200, target, keepAlive);
    if (!keepAlive) this.close();
  }

  #refuse(status) {
    this.#respond(status, REASONS[status], false);
    this.protocolError();
  }

  #respond(status, body, keepAlive) {
    const head =
      `HTTP/1.1 ${status} ${REASONS[status]}\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${body.length}\r\n${keepAlive ? '' : 'Connection: close\r\n'}\r\n`;
    this.effects.reply(Buffer.from(head, 'latin1'), Buffer.from(body, 'latin1'));
  }
}

module.exports = { HttpSession };
