// What is asked of the event loop and of the clocks, apart from sockets.
'use strict';

var fs = require('fs');

var SCHEDSTAT = '/proc/' + process.pid + '/task/' + process.pid + '/schedstat';

/** Milliseconds of a clock that only goes forward. */
function nowMs() {
  var time = process.hrtime();
  return time[0] * 1e3 + time[1] / 1e6;
}

/** CPU time of the JavaScript thread, which Node 0.10 cannot tell (proc(5), schedstat: nanoseconds first). */
function cpuMs() {
  return Number(fs.readFileSync(SCHEDSTAT, 'ascii').split(' ')[0]) / 1e6;
}

/** Keeps the core busy for `ms` of CPU time, so being preempted does not count as work. */
function burnCpu(ms) {
  var end = cpuMs() + ms;
  for (var left = ms; left > 0; left = end - cpuMs()) {
    var until = nowMs() + left;
    while (nowMs() < until);
  }
}

/** Calls `then` after the first full turn of the event loop in which `count()` does not change. A callback of
 * setImmediate comes after the poll of its turn, and one set there after the next poll. */
function whenQuiet(count, then) {
  var before = count();
  afterTurns(2, function () {
    if (count() === before) then();
    else whenQuiet(count, then);
  });
}

/** Calls `then` when the loop has polled so many times more. */
function afterTurns(turns, then) {
  setImmediate(turns > 1 ? afterTurns.bind(null, turns - 1, then) : then);
}

module.exports = { afterTurns: afterTurns, burnCpu: burnCpu, nowMs: nowMs, whenQuiet: whenQuiet };
