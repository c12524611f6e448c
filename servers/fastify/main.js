// The workload web by Fastify: Node's event loop below its router and its serialisation.
'use strict';

const fastify = require('fastify')({ logger: false });

const ITEMS = [{ id: 1, name: 'one' }, { id: 2, name: 'two' }, { id: 3, name: 'three' }];
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, Math.ceil(ms)); });

// A timer may come a little early; then there is another one.
async function sleep(us) {
  const end = performance.now() + us / 1000;
  for (let left; (left = end - performance.now()) > 0; ) await pause(left);
}

const SCHEMA = {
  response: {
    200: {
      type: 'array',
      items: { type: 'object', properties: { id: { type: 'integer' }, name: { type: 'string' } } },
    },
  },
};

// Busy by the clock, as Node.js 20 has no CPU clock of a thread.
function burn(us) {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => done(null, body));
fastify.get('/items', { schema: SCHEMA }, async () => ITEMS);
fastify.post('/items', async (request) => (request.body ? request.body.length : 0));
fastify.get('/:stamp', async (request, reply) => {
  const { wait = '0us', cpu = '0us', size = '0' } = request.query;
  if (parseInt(wait, 10) > 0) await sleep(parseInt(wait, 10));
  burn(parseInt(cpu, 10));
  reply.type('text/plain');
  return request.params.stamp.padEnd(Number(size), 'x');
});

fastify.listen({ host: process.argv[2], port: Number(process.argv[3]) });
