// One client: its socket, its session, and the effects that are being carried out. All on the one thread.
'use strict';

var HttpSession = require('./http.js').HttpSession;
var loop = require('./loop.js');

var BURN_SLICE_MS = 10;
var LONGEST_TIMER_MS = Math.pow(2, 31) - 1;
var LINGER_MS = 1000; // that a connection closed because of what the peer sent may take to deliver the last replies
var TURNS_TO_END = 3; // in which libuv tells the kernel that our stream has ended

/** `server` has options, totals and left(connection). */
function Connection(socket, server) {
  this.server = server;
  this.socket = socket;
  this.session = new HttpSession(server.options, server.totals);
  this.effects = []; // to be carried out, from `next` on
  this.next = 0;
  this.reads = 0;
  this.writes = 0; // that the kernel has not taken yet
  this.onTaken = null; // called once, when it has
  this.busy = false; // an effect takes time
  this.waits = false; // for its time to pass: what is read meanwhile is held, so that a reset is noticed
  this.held = null; // one read, for then reading pauses
  this.ended = false; // by the peer
  this.closing = false;
  this.stopping = false;
  this.gone = false;
  this.timer = undefined;
  socket.ondata = this.readSome.bind(this); // as http.js of Node 0.10 reads: the slab itself, and no stream over it
  socket.onend = this.peerEnded.bind(this);
  socket.on('error', function () {}); // the peer is gone, which concerns no other client; 'close' follows
  socket.on('close', this.closed.bind(this));
  this.pause(false);
}

/** Ends the input at what has arrived. Node has no shutdown(SHUT_RD), but nothing is left once a turn of the loop
 * brings nothing. */
Connection.prototype.stopReceiving = function () {
  var self = this;
  this.stopping = true;
  loop.whenQuiet(
    function () {
      return self.reads;
    },
    function () {
      if (self.busy || self.gone) return; // goOn comes back here
      if (!self.closing) self.endSession();
      else if (self.writes === 0) self.linger();
    }
  );
};

/** Stops reading, or goes on with it. Node 0.10 does it so itself (http.js, readStop): pause() is its streams'. */
Connection.prototype.pause = function (paused) {
  var handle = this.socket._handle;
  if (!handle) return;
  if (paused) handle.readStop();
  else handle.readStart();
};

/** Takes what one read brought, from `at` to `end` of a slab that others are read into as well. */
Connection.prototype.readSome = function (slab, at, end) {
  var bytes = slab.toString('binary', at, end);
  this.reads += 1;
  if (this.waits) {
    this.held = bytes;
    this.pause(true);
  } else if (!this.start(this.session.receive(bytes)) && !this.waits) {
    this.pause(true);
  }
};

Connection.prototype.peerEnded = function () {
  if (this.gone) return;
  this.ended = true;
  if (!this.busy) this.endSession();
};

Connection.prototype.endSession = function () {
  if (!this.start(this.session.end())) this.pause(true);
};

Connection.prototype.start = function (effects) {
  this.effects = effects;
  this.next = 0;
  return this.carryOut();
};

/** Carries out effects until one takes time; true when none is left. */
Connection.prototype.carryOut = function () {
  this.busy = true;
  while (this.next < this.effects.length && !this.gone) {
    this.next += 1;
    if (!this.carryOutOne(this.effects[this.next - 1])) return false;
  }
  this.busy = false;
  return true;
};

/** Goes on after a service time. */
Connection.prototype.goOn = function () {
  this.waits = false;
  if (this.gone || !this.carryOut()) return;
  if (this.held !== null) {
    var held = this.held;
    this.held = null;
    if (!this.start(this.session.receive(held))) {
      this.pause(!this.waits);
      return;
    }
  }
  if (!this.ended) this.pause(false);
  else if (!this.session.closed) this.endSession();
  if (this.stopping) this.stopReceiving();
};

/** False when it takes time; goOn follows. */
Connection.prototype.carryOutOne = function (effect) {
  switch (effect.kind) {
    case 'write':
      return this.write(effect.text);
    case 'wait':
      return this.wait(loop.nowMs() + effect.duration / 1e6);
    case 'burn':
      return this.burn(effect.duration / 1e6);
    case 'close':
      this.finish();
      return true;
    default:
      throw new Error('an effect that is not known: ' + effect.kind);
  }
};

/** Each is a system call of its own (Node 0.10 has no writev), now where the socket has room. */
Connection.prototype.write = function (text) {
  this.writes += 1;
  this.socket.write(text, 'ascii', this.written.bind(this, text.length));
  if (this.tookAll()) return true;
  this.onTaken = this.goOn;
  return false;
};

/** Whether the kernel has all that was written: Node calls back later. */
Connection.prototype.tookAll = function () {
  return !this.socket._handle || this.socket._handle.writeQueueSize === 0;
};

Connection.prototype.written = function (size, error) {
  this.writes -= 1;
  if (error || this.gone) return;
  this.server.totals.bytes_out += size;
  if (this.writes > 0 || this.onTaken === null) return;
  var then = this.onTaken;
  this.onTaken = null;
  then.call(this);
};

/** A timer counts whole milliseconds and may come a little early; then there is another one. */
Connection.prototype.wait = function (until) {
  var self = this;
  this.waits = true;
  var left = Math.min(Math.ceil(until - loop.nowMs()), LONGEST_TIMER_MS);
  this.timer = setTimeout(function () {
    if (loop.nowMs() < until) self.wait(until);
    else self.goOn();
  }, left);
  return false;
};

/** Long work is cut into slices, between which the loop turns: a signal could not be seen otherwise. */
Connection.prototype.burn = function (ms) {
  var self = this;
  loop.burnCpu(Math.min(ms, BURN_SLICE_MS));
  if (ms <= BURN_SLICE_MS) return true;
  setImmediate(function () {
    if (self.gone || self.burn(ms - BURN_SLICE_MS)) self.goOn();
  });
  return false;
};

Connection.prototype.finish = function () {
  this.closing = true;
  if (this.writes === 0) this.linger();
  else this.onTaken = this.linger;
};

/** Ends our stream and reads on (the session ignores it) until the peer ends its own: a close with unread bytes resets
 * the connection, and the peer would lose the replies that are still on their way (RFC 9112, 9.6). */
Connection.prototype.linger = function () {
  var destroy = this.socket.destroy.bind(this.socket);
  this.socket.end();
  if (this.stopping) loop.afterTurns(TURNS_TO_END, destroy);
  else this.timer = setTimeout(destroy, LINGER_MS);
};

Connection.prototype.closed = function () {
  this.gone = true;
  clearTimeout(this.timer);
  this.session.discard();
  this.server.left(this);
};

module.exports = { Connection: Connection };
