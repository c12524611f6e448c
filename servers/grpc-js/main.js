// The workload grpc by @grpc/grpc-js: HTTP/2 of Node.js, one event loop.
'use strict';

const fs = require('node:fs');
const grpc = require('@grpc/grpc-js');
const { loadSync } = require('@grpc/proto-loader');

// Busy by the clock, as JavaScript has no CPU clock of a thread.
function burn(us) {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

function answer({ request: { stamp, waitUs, cpuUs, size } }, reply) {
  const finish = () => {
    burn(cpuUs);
    const body = Buffer.alloc(Math.max(stamp.length, size), 'x');
    stamp.copy(body);
    reply(null, { body });
  };
  if (waitUs > 0) setTimeout(finish, waitUs / 1000);
  else finish();
}

function makeCredentials(file) {
  if (file === '') return grpc.ServerCredentials.createInsecure();
  const pem = fs.readFileSync(file);
  return grpc.ServerCredentials.createSsl(null, [{ private_key: pem, cert_chain: pem }]);
}

const [proto, address, certificate] = process.argv.slice(2);
const { unary } = grpc.loadPackageDefinition(loadSync(proto)).netdyno;
const server = new grpc.Server();
server.addService(unary.Work.service, { answer });
server.bindAsync(address, makeCredentials(certificate), (error) => {
  if (error) throw error;
});
