// The connections to a backend (protocol/WIRE.md, Backend), on the one thread.
'use strict';

const net = require('node:net');

const { exitWith } = require('./lifecycle.js');
const { encodeQuestion } = require('./protobuf.js');

const HEADER = 4; // bytes of a frame's length

/** One connection, one question in flight. `ready()` is called when it can be asked for the first time. */
class AskedConnection {
  constructor({ host, port }, ready) {
    this.answer = Buffer.alloc(0);
    this.socket = net.connect({ host, port, noDelay: true }, ready);
    this.socket.on('data', (bytes) => this.#receive(bytes));
    this.socket.on('error', ({ message }) => {
      exitWith(`cannot connect to the backend tcp://${host}:${port}; start it first: ${message}`);
    });
    this.socket.on('close', () => exitWith('the backend closed a connection; it must run as long as this server'));
  }

  ask(duration, replied) {
    this.replied = replied;
    this.socket.write(encodeQuestion(duration, HEADER));
  }

  #receive(bytes) {
    this.answer = Buffer.concat([this.answer, bytes]);
    if (this.answer.length < HEADER || this.answer.length < HEADER + this.answer.readUInt32BE(0)) return;
    this.answer = Buffer.alloc(0);
    this.replied();
  }
}

/** A question without a free connection waits, in the order of arrival. */
class BackendPool {
  free = [];
  waiting = [];

  constructor({ backend }) {
    this.backend = backend;
  }

  /** Calls `ready` once all connections are there. */
  connect(ready) {
    let missing = this.backend.pool;
    for (let i = 0; i < this.backend.pool; i += 1) {
      const connection = new AskedConnection(this.backend, () => {
        this.free.push(connection);
        missing -= 1;
        if (missing === 0) ready();
      });
    }
  }

  /** Calls `replied` when the backend has replied after so many nanoseconds. */
  ask(duration, replied) {
    this.waiting.push({ duration, replied });
    this.#askNext();
  }

  #askNext() {
    if (this.free.length === 0 || this.waiting.length === 0) return;
    const connection = this.free.shift();
    const { duration, replied } = this.waiting.shift();
    connection.ask(duration, () => {
      this.free.push(connection);
      this.#askNext();
      replied();
    });
  }
}

module.exports = { BackendPool };
