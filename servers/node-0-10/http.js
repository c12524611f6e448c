// HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. The work of
// one connection without any I/O, as servers/_shared/node/http.js and session.js have it, in the language of Node 0.10:
// ECMAScript 5, and a Buffer that cannot be searched. So what has come waits as a string of bytes.
'use strict';

var MAX_HEAD = 16 * 1024;
var END_OF_HEAD = '\r\n\r\n';
var REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/;
var TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
var VALUE = /^[^\0\r\n]*$/;
var OK = '200 OK';
var BAD_REQUEST = { status: '400 Bad Request' };
var NOT_IMPLEMENTED = { status: '501 Not Implemented' };

/** The counts of every server. */
function newTotals() {
  return { requests: 0, bytes_in: 0, bytes_out: 0, connections: 0, protocol_errors: 0, slow_closed: 0 };
}

/** The time as a header has it (RFC 9110, 5.6.7), made once a second. */
var clock = { second: -1, text: '' };
function date() {
  var now = Date.now();
  var second = Math.floor(now / 1000);
  if (second !== clock.second) {
    clock.second = second;
    clock.text = new Date(now).toUTCString();
  }
  return clock.text;
}

/** Without the blanks and tabs around it, and nothing else (String.trim knows more). */
function trim(text) {
  var from = 0;
  var to = text.length;
  while (from < to && (text[from] === ' ' || text[from] === '\t')) from += 1;
  while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to -= 1;
  return text.slice(from, to);
}

/** Reads the lines of a head that matter here: {status, target, wantsBody, connection}, status OK when it is good. The
 * connection is what a reply says of it: 'close', 'keep-alive', or nothing where it stays by default. */
function parseHead(head) {
  var lines = head.split('\r\n');
  var first = REQUEST_LINE.exec(lines[0]);
  if (first === null) return BAD_REQUEST;
  var seen = { hosts: 0, hasBody: false, connection: [] };
  for (var i = 1; i < lines.length; i += 1) {
    var colon = lines[i].indexOf(':');
    var value = lines[i].slice(colon + 1);
    if (colon < 0 || !TOKEN.test(lines[i].slice(0, colon)) || !VALUE.test(value)) return BAD_REQUEST;
    readHeader(lines[i].slice(0, colon).toLowerCase(), trim(value), seen);
  }
  var stays = first[3] === '1';
  if (seen.hosts > 1 || (seen.hosts === 0 && stays)) return BAD_REQUEST;
  if (first[1] !== 'GET' && first[1] !== 'HEAD') return NOT_IMPLEMENTED; // RFC 9110, 9.1: also with a body
  if (seen.hasBody) return BAD_REQUEST;
  return {
    status: OK,
    target: first[2],
    wantsBody: first[1] === 'GET',
    connection: connectionOf(seen.connection, stays),
  };
}

function readHeader(name, value, seen) {
  if (name === 'host') seen.hosts += 1;
  if (name === 'connection')
    value.split(',').forEach(function (item) {
      seen.connection.push(trim(item).toLowerCase());
    });
  if (name === 'transfer-encoding' || (name === 'content-length' && value !== '0')) seen.hasBody = true;
}

function connectionOf(tokens, stays) {
  if (tokens.indexOf('close') >= 0) return 'close';
  if (stays) return '';
  return tokens.indexOf('keep-alive') >= 0 ? 'keep-alive' : 'close';
}

/** `options` as options.js reads them; counts into `totals`. What is to be done are effects, in order:
 *
 *   write      text, of ASCII alone, that leaves in one write
 *   wait       duration, ns, to pass without holding up other connections
 *   burn       duration, ns, to keep the core busy
 *   close      once the writes before it are sent
 */
function HttpSession(options, totals) {
  this.options = options;
  this.totals = totals;
  this.maxHead = Math.min(MAX_HEAD, options.maxFrame);
  this.pending = ''; // of a head that is not complete
  this.searched = 0; // of it: no head ends before
  this.closed = false;
  this.effects = [];
}

/** Takes the next bytes of the stream, a string with a character for each, in any slicing; returns what is to be done.
 * After a close they are ignored. */
HttpSession.prototype.receive = function (bytes) {
  this.totals.bytes_in += bytes.length;
  if (!this.closed) this.consume(this.pending + bytes);
  return this.take();
};

/** The peer ended its stream, which must not end inside a message. */
HttpSession.prototype.end = function () {
  if (this.closed) return [];
  if (this.pending.length > 0) this.protocolError();
  else this.close();
  return this.take();
};

/** The connection is gone. */
HttpSession.prototype.discard = function () {
  this.closed = true;
  this.pending = '';
};

HttpSession.prototype.consume = function (bytes) {
  var at = 0;
  while (!this.closed) {
    while (bytes[at] === '\r' && bytes[at + 1] === '\n') at += 2; // RFC 9112, 2.2
    var end = bytes.indexOf(END_OF_HEAD, Math.max(at, this.searched));
    this.searched = 0;
    // The last bytes of an incomplete head may be the beginning of its end, which does not count.
    var tooLong = end < 0 ? bytes.length - at >= this.maxHead + END_OF_HEAD.length : end - at > this.maxHead;
    if (!tooLong && end < 0) break;
    this.serve(tooLong ? BAD_REQUEST : parseHead(bytes.slice(at, end)));
    at = end + END_OF_HEAD.length;
  }
  this.pending = this.closed ? '' : bytes.slice(at);
  this.searched = Math.max(0, this.pending.length - END_OF_HEAD.length);
};

HttpSession.prototype.serve = function (head) {
  if (head.status !== OK) {
    this.respond(head.status, '', false, 'close');
    this.protocolError();
    return;
  }
  this.totals.requests += 1;
  if (this.options.serviceTime > 0)
    this.effects.push({ kind: this.options.serviceKind, duration: this.options.serviceTime });
  this.respond(OK, head.target, head.wantsBody, head.connection);
  if (head.connection === 'close') this.close();
};

HttpSession.prototype.respond = function (status, body, withBody, connection) {
  this.write(
    'HTTP/1.1 ' + status + '\r\nDate: ' + date() + '\r\nContent-Type: text/plain\r\nContent-Length: ' + body.length +
      '\r\n' + (connection === '' ? '' : 'Connection: ' + connection + '\r\n') + '\r\n'
  );
  if (withBody && body.length > 0) this.write(body);
};

/** Gathered: joins the write before it. Split: a write per part. */
HttpSession.prototype.write = function (text) {
  var last = this.effects[this.effects.length - 1];
  if (!this.options.split && last !== undefined && last.kind === 'write') last.text += text;
  else this.effects.push({ kind: 'write', text: text });
};

HttpSession.prototype.protocolError = function () {
  this.totals.protocol_errors += 1;
  this.close();
};

HttpSession.prototype.close = function () {
  this.closed = true;
  this.effects.push({ kind: 'close' });
};

HttpSession.prototype.take = function () {
  var taken = this.effects;
  this.effects = [];
  return taken;
};

module.exports = { HttpSession: HttpSession, newTotals: newTotals };
