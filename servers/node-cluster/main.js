// Node.js, cluster: the primary process accepts, and deals the connections out to N workers in turn. Each has net sockets
// on the event loop of its own process; a connection is a set of callbacks. Chat between workers passes the primary.
'use strict';

const cluster = require('node:cluster');

const lifecycle = require('../_shared/node/lifecycle.js');
const { readOrExit } = require('../_shared/node/options.js');
const { Server } = require('../_shared/node/server.js');
const { newTotals } = require('../_shared/node/session.js');

const KILL_AFTER_MS = lifecycle.SHUTDOWN_GRACE_MS + 1000; // a worker that does not even keep its own grace

/** A worker. It and the primary send each other messages, {kind, ...}:
 *
 *   to it    chat       frames: from other workers
 *            relayed    the frames that it sent first are with the others
 *            stop       accept no more, and end every stream
 *   from it  listening  address: it takes connections
 *            failed     reason: it cannot listen
 *            chat       frames: for the other workers
 *            totals     totals: it has ended every stream
 */
class Worker extends Server {
  constructor(options) {
    super(options);
    this.unsent = { frames: [], speakers: new Set() }; // for the other workers
    this.underWay = []; // the speakers of what was sent to them, in that order
    this.finished = false; // its totals are with the primary
  }

  receive({ kind, frames }) {
    if (kind === 'stop') this.stop();
    else if (kind === 'chat') for (const parts of frames) this.deliver(parts);
    else for (const speaker of this.underWay.shift()) speaker.relayed();
  }

  broadcast(parts, sender) {
    super.broadcast(parts, sender);
    if (this.options.threads > 1) this.#relayLater(parts, sender);
  }

  /** Frames for the other workers leave in one message at the end of the loop's turn. */
  #relayLater(parts, sender) {
    if (this.unsent.frames.length === 0) setImmediate(() => this.#relay());
    this.unsent.frames.push(parts);
    this.unsent.speakers.add(sender);
    sender.relaying = true;
  }

  #relay() {
    const { frames, speakers } = this.unsent;
    this.unsent = { frames: [], speakers: new Set() };
    this.underWay.push(speakers);
    sendToPrimary({ kind: 'chat', frames });
  }

  /** The primary then closes the channel, at which Node ends a worker: so it also does when the primary is killed. */
  exit() {
    if (!this.finished) sendToPrimary({ kind: 'totals', totals: this.totals });
    this.finished = true;
  }
}

function sendToPrimary(message) {
  process.send(message, ignore);
}

/** Starts the workers, passes chat on between them, and adds up what they count. */
class Primary {
  constructor(options) {
    this.workers = [];
    this.listening = 0; // workers
    this.ended = 0;
    this.totals = new Map(); // of each worker that has ended every stream
    this.stopping = false;
    cluster.setupPrimary({ serialization: 'advanced' }); // a frame is bytes, which JSON has not
    cluster.on('message', (worker, message) => this.#receive(worker, message));
    cluster.on('exit', (worker, code, signal) => this.#workerEnded(worker, signal ?? `exit code ${code}`));
    for (let i = 0; i < options.threads; i += 1) this.workers.push(cluster.fork());
  }

  #receive(worker, { kind, address, reason, frames, totals }) {
    if (kind === 'listening') this.#workerListens(address);
    else if (kind === 'failed') lifecycle.exitWith(reason);
    else if (kind === 'chat') this.#relay(worker, frames);
    else this.#workerFinished(worker, totals);
  }

  #workerListens(address) {
    this.listening += 1;
    if (this.listening === this.workers.length) lifecycle.announceReady(address);
  }

  /** Once the system has taken the frames for every other worker, their speakers are read again: a worker that is slow to
   * take them slows these down, and little waits here. */
  #relay(speaker, frames) {
    let left = this.workers.length - 1;
    const sent = () => {
      left -= 1;
      if (left === 0) speaker.send({ kind: 'relayed' }, ignore);
    };
    for (const worker of this.workers) if (worker !== speaker) worker.send({ kind: 'chat', frames }, sent);
  }

  /** Workers stop accepting, the last of them for the primary as well. */
  stop() {
    if (this.stopping) return;
    this.stopping = true;
    for (const worker of this.workers) worker.send({ kind: 'stop' }, ignore);
    setTimeout(() => this.#kill(), KILL_AFTER_MS);
  }

  /** What such a worker has counted is lost. */
  #kill() {
    for (const worker of this.workers) {
      if (this.totals.has(worker)) continue;
      this.totals.set(worker, newTotals());
      worker.process.kill('SIGKILL');
    }
  }

  #workerFinished(worker, totals) {
    this.totals.set(worker, totals);
    worker.process.disconnect();
  }

  #workerEnded(worker, how) {
    if (!this.totals.has(worker)) lifecycle.exitWith(`a worker has ended by itself: ${how}`);
    this.ended += 1;
    if (this.ended === this.workers.length) this.#exit();
  }

  #exit() {
    const shares = this.workers.map((worker) => this.totals.get(worker));
    const sum = newTotals();
    for (const share of shares) for (const key of Object.keys(sum)) sum[key] += share[key];
    lifecycle.printLine({ ...sum, connections_per_thread: shares.map(({ connections }) => connections) });
    process.exit(0);
  }
}

/** Where a message cannot be sent, the process at the other end has ended, which is noticed there and here. */
function ignore() {}

const options = readOrExit(process.argv.slice(2));
if (cluster.isPrimary) {
  const primary = new Primary(options);
  process.on('SIGTERM', () => primary.stop());
  process.on('SIGINT', () => primary.stop());
} else {
  const worker = new Worker(options);
  process.on('message', (message) => worker.receive(message));
  process.on('SIGTERM', ignore); // a terminal sends signals to every process; the primary's counts
  process.on('SIGINT', ignore);
  worker.start(
    (address) => sendToPrimary({ kind: 'listening', address }),
    (reason) => sendToPrimary({ kind: 'failed', reason }),
  );
}
