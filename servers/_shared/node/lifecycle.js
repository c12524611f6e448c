// The steps of a server's life from its first line of output to its last.
'use strict';

const { program } = require('./options.js');

const SHUTDOWN_GRACE_MS = 2000; // how long a server may still work on what is in flight after a shutdown signal

const HINTS = {
  EADDRINUSE: 'another program listens there: choose another port, or port 0 for a free one',
  EACCES: 'ports below 1024 need rights: choose a higher one',
  EADDRNOTAVAIL: "that address is not one of this machine's",
};

function printLine(object) {
  process.stdout.write(`${JSON.stringify(object)}\n`);
}

/** Prints the line that announces that the server accepts at this address. */
function announceReady(address) {
  printLine({ ready: true, endpoint: formatUrl(address), pid: process.pid });
}

/** Ends the program: it cannot do what its options request. */
function exitWith(reason) {
  process.stderr.write(`${program}: ${reason}\n`);
  process.exit(1);
}

/** tcp://host:port with the port that the kernel chose. */
function formatUrl({ address, port }) {
  return `tcp://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

function explainListenError({ listen: { host, port } }, { code, message }) {
  const hint = HINTS[code] ? `; ${HINTS[code]}` : '';
  return `cannot listen on ${formatUrl({ address: host, port })}${hint}: ${message}`;
}

module.exports = { SHUTDOWN_GRACE_MS, announceReady, exitWith, explainListenError, printLine };
