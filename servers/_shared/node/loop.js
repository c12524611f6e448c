// What is asked of the event loop and of the clock, apart from sockets.
'use strict';

const { performance } = require('node:perf_hooks');

/** Keeps the core busy for `ms` of CPU time, so being preempted does not count as work. Node 20 tells CPU time of the
 * whole process only; its other threads are as good as idle while this one spins. */
function burnCpu(ms) {
  const before = process.cpuUsage();
  for (let left = ms; left > 0; ) {
    const until = performance.now() + left;
    while (performance.now() < until);
    const used = process.cpuUsage(before);
    left = ms - (used.user + used.system) / 1000;
  }
}

/** Calls `then` after the first full turn of the event loop in which `count()` does not change. A callback of
 * setImmediate comes after the poll of its turn, and one set there after the next poll. */
function whenQuiet(count, then) {
  const before = count();
  setImmediate(() => setImmediate(() => (count() === before ? then() : whenQuiet(count, then))));
}

module.exports = { burnCpu, whenQuiet };
