// Node.js: net sockets on the one event loop; a connection is a set of callbacks.
'use strict';

const lifecycle = require('../_shared/node/lifecycle.js');
const { readOrExit } = require('../_shared/node/options.js');
const { Server } = require('../_shared/node/server.js');

const server = new Server(readOrExit(process.argv.slice(2)));
process.on('SIGTERM', () => server.stop());
process.on('SIGINT', () => server.stop());
server.start(lifecycle.announceReady, lifecycle.exitWith);
