// Node.js 0.10: net sockets on the one event loop; a connection is a set of callbacks.
'use strict';

var net = require('net');

var Connection = require('./connection.js').Connection;
var newTotals = require('./http.js').newTotals;
var whenQuiet = require('./loop.js').whenQuiet;
var settings = require('./options.js');

var SHUTDOWN_GRACE_MS = 2000; // how long a server may still work on what is in flight after a shutdown signal

var HINTS = {
  EADDRINUSE: 'another program listens there: choose another port, or port 0 for a free one',
  EACCES: 'ports below 1024 need rights: choose a higher one',
  EADDRNOTAVAIL: "that address is not one of this machine's",
};

/** tcp://host:port with the port that the kernel chose. */
function formatUrl(host, port) {
  return 'tcp://' + (host.indexOf(':') >= 0 ? '[' + host + ']' : host) + ':' + port;
}

function Server(options) {
  this.options = options;
  this.totals = newTotals();
  this.members = [];
  this.listening = false;
  this.stopping = false;
  this.listener = net.createServer({ allowHalfOpen: true }, this.join.bind(this));
}

/** Calls `ready(address)` once it listens; an error before that ends the program with a hint. */
Server.prototype.listen = function (ready) {
  var self = this;
  var host = this.options.host;
  var port = this.options.port;
  this.listener.once('error', function (error) {
    var hint = HINTS[error.code] ? '; ' + HINTS[error.code] : '';
    var where = formatUrl(host, port);
    settings.writeLine(2, settings.program + ': cannot listen on ' + where + hint + ': ' + error.message);
    process.exit(1);
  });
  this.listener.listen(port, host, this.options.backlog, function () {
    self.listener.removeAllListeners('error');
    self.listener.on('error', function () {}); // accept(2) failed: that concerns the peer alone, or what is scarce now
    self.listening = true;
    ready(self.listener.address());
  });
};

Server.prototype.join = function (socket) {
  this.totals.connections += 1;
  if (this.options.nodelay) socket.setNoDelay(true);
  var connection = new Connection(socket, this);
  connection.place = this.members.push(connection) - 1;
  if (this.stopping) connection.stopReceiving();
};

/** Stops accepting (who is in the listen queue is let in), and ends every stream at what has arrived. */
Server.prototype.stop = function () {
  var self = this;
  if (this.stopping) return;
  this.stopping = true;
  setTimeout(this.exit.bind(this), SHUTDOWN_GRACE_MS);
  this.members.forEach(function (member) {
    member.stopReceiving();
  });
  whenQuiet(
    function () {
      return self.totals.connections;
    },
    function () {
      self.listening = false;
      self.listener.close();
      self.exitIfAllGone();
    }
  );
};

/** The last member takes the place of the one that has left. */
Server.prototype.left = function (connection) {
  var last = this.members.pop();
  if (last !== connection) {
    this.members[connection.place] = last;
    last.place = connection.place;
  }
  this.exitIfAllGone();
};

Server.prototype.exitIfAllGone = function () {
  if (this.stopping && !this.listening && this.members.length === 0) this.exit();
};

Server.prototype.exit = function () {
  settings.writeLine(1, JSON.stringify(this.totals));
  process.exit(0);
};

var server = new Server(settings.readOrExit(process.argv.slice(2)));
process.on('SIGTERM', server.stop.bind(server));
process.on('SIGINT', server.stop.bind(server));
server.listen(function (address) {
  var endpoint = formatUrl(address.address, address.port);
  settings.writeLine(1, JSON.stringify({ ready: true, endpoint: endpoint, pid: process.pid }));
});
