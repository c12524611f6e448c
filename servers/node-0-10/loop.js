// What is asked of the event loop and of the clocks, apart from sockets.
'use strict';

var fs = require('fs');

var SCHEDSTAT = fs.openSync('/proc/' + process.pid + '/task/' + process.pid + '/schedstat', 'r');
var text = new Buffer(128);

/** Milliseconds of a clock that only goes forward. */
function nowMs() {
  var time = process.hrtime();
  return time[0] * 1e3 + time[1] / 1e6;
}

/** How long the JavaScript thread has waited for a core (proc(5), schedstat: nanoseconds second). Node 0.10 cannot tell
 * CPU time, and the kernel brings the one of schedstat up to date only at its ticks, some milliseconds apart. */
function waitedMs() {
  var size = fs.readSync(SCHEDSTAT, text, 0, text.length, 0);
  return Number(text.toString('ascii', 0, size).split(' ')[1]) / 1e6;
}

/** Keeps the core busy for `ms` of CPU time, so being preempted does not count as work. */
function burnCpu(ms) {
  var begin = nowMs() - waitedMs();
  do {
    var until = begin + waitedMs() + ms;
    while (nowMs() < until);
  } while (nowMs() - waitedMs() - begin < ms);
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
