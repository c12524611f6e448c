// The options that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options".
'use strict';

const path = require('node:path');

const program = path.basename(path.dirname(process.argv[1])); // a server is called as its folder

/** {host, port, workload, ...} of one JSON object: sizes in bytes and durations in nanoseconds. */
function read(resolved) {
  const given = JSON.parse(resolved);
  return {
    listen: { host: given.host, port: given.port },
    workload: given.workload,
    threads: given.threads,
    backlog: given.backlog,
    nodelay: given.nodelay,
    readBuffer: given.read_buffer,
    split: given.write_mode === 'split',
    toAll: given.audience === 'all',
    single: given.deliveries === 'single',
    serviceTime: given.service_time_ns,
    serviceKind: given.service_kind === 'cpu' ? 'burn' : 'wait',
    maxFrame: given.max_frame,
    outboxLimit: given.outbox_limit,
    backend: given.pool && { host: given.backend_host, port: given.backend_port, pool: given.pool },
    encrypt: given.tls && require('./tls.js').load(given.tls), // without TLS it is undefined
  };
}

/** Ends the program with exit 2 where it was not started by the launcher. */
function readOrExit(argv) {
  if (argv.length === 1 && argv[0].startsWith('{')) return read(argv[0]);
  process.stderr.write(`${program}: wants its resolved options as one JSON argument: ./netdyno serve ${program}\n`);
  return process.exit(2);
}

module.exports = { read, readOrExit, program };
