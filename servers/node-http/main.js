// The workload web by Node's module http alone: one event loop.
'use strict';

const http = require('node:http');
const querystring = require('node:querystring');

const ITEMS = [{ id: 1, name: 'one' }, { id: 2, name: 'two' }, { id: 3, name: 'three' }];

// Busy by the clock, as Node.js 20 has no CPU clock of a thread.
function burn(us) {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

function reply(response, type, body) {
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

function answerItems(request, response) {
  if (request.method !== 'POST') return reply(response, 'application/json', JSON.stringify(ITEMS));
  let length = 0;
  request.on('data', (piece) => { length += piece.length; });
  request.on('end', () => reply(response, 'application/json', `${length}`));
}

// Calls back at a moment. A timer counts whole milliseconds and may come a little early; then there is another one.
function waitUntil(moment, then) {
  const left = moment - performance.now();
  if (left > 0) setTimeout(waitUntil, Math.ceil(left), moment, then);
  else then();
}

function stream(response, stamp, chunks, every, size) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const begin = performance.now();
  let number = 0;
  const goOn = () => {
    for (; number < chunks && !response.destroyed; number++) {
      const due = begin + number * every;
      if (due > performance.now()) return waitUntil(due, goOn);
      response.write(`data: ${`${stamp}${String(number).padStart(4, '0')}`.padEnd(size, 'x')}\n\n`);
    }
    return response.end();
  };
  goOn();
}

function answer(request, response) {
  const [path, query = ''] = request.url.split('?');
  if (path === '/items') return answerItems(request, response);
  const { wait = '0us', cpu = '0us', size = '0', chunks = '0', every = '0us' } = querystring.parse(query);
  const stamp = path.slice(1);
  if (Number(chunks) > 0) {
    return stream(response, stamp, Number(chunks), parseInt(every, 10) / 1000, Number(size));
  }
  const us = parseInt(wait, 10);
  const finish = () => {
    burn(parseInt(cpu, 10));
    reply(response, 'text/plain', stamp.padEnd(Number(size), 'x'));
  };
  if (us > 0) waitUntil(performance.now() + us / 1000, finish);
  else finish();
}

http.createServer(answer).listen(Number(process.argv[3]), process.argv[2]);
