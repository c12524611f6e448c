// The options that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options".
'use strict';

var fs = require('fs');
var path = require('path');

var program = path.basename(__dirname);
var WORKLOAD = 'http';

/** Reads one JSON object: sizes in bytes and durations in nanoseconds. */
function read(resolved) {
  var given = JSON.parse(resolved);
  return {
    host: given.host,
    port: given.port,
    workload: given.workload,
    backlog: given.backlog,
    nodelay: given.nodelay,
    split: given.write_mode === 'split',
    serviceTime: given.service_time_ns,
    serviceKind: given.service_kind === 'cpu' ? 'burn' : 'wait',
    maxFrame: given.max_frame,
  };
}

/** Writes a line at once, whatever the descriptor is: process.exit does not wait for streams. */
function writeLine(descriptor, text) {
  var line = new Buffer(text + '\n');
  fs.writeSync(descriptor, line, 0, line.length, null);
}

/** Ends the program with exit 2 where it was not started by the launcher, or for what it does not speak. */
function readOrExit(argv) {
  var wrong = program + ': wants its resolved options as one JSON argument: ./netdyno serve ' + program;
  if (argv.length === 1 && argv[0][0] === '{') {
    var options = read(argv[0]);
    if (options.workload === WORKLOAD) return options;
    wrong = program + ': --workload: ' + options.workload + ' is not spoken here; want ' + WORKLOAD;
  }
  writeLine(2, wrong);
  return process.exit(2);
}

module.exports = { read: read, readOrExit: readOrExit, program: program, writeLine: writeLine };
