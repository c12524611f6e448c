// The workload web by Node's module http alone: one event loop.
'use strict';

const http = require('node:http');

const ITEMS = JSON.stringify([{ id: 1, name: 'one' }, { id: 2, name: 'two' }, { id: 3, name: 'three' }]);

// Busy by the clock, as JavaScript has no CPU clock of a thread.
function burn(us) {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

function reply(response, type, body) {
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

function answerItems(request, response) {
  if (request.method !== 'POST') return reply(response, 'application/json', ITEMS);
  let length = 0;
  request.on('data', (piece) => { length += piece.length; });
  request.on('end', () => reply(response, 'application/json', `${length}`));
}

// A timer counts whole milliseconds and may come a little early; then there is another one.
function stream(response, stamp, chunks, every, size) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const begin = performance.now();
  let number = 0;
  const goOn = () => {
    for (; number < chunks && !response.destroyed; number++) {
      const left = begin + number * every - performance.now();
      if (left > 0) return setTimeout(goOn, Math.ceil(left));
      response.write(`data: ${`${stamp}${String(number).padStart(4, '0')}`.padEnd(size, 'x')}\n\n`);
    }
    return response.end();
  };
  goOn();
}

function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (pathname === '/items') return answerItems(request, response);
  const us = (name) => parseInt(searchParams.get(name) ?? '0', 10);
  const chunks = us('chunks');
  if (chunks > 0) return stream(response, pathname.slice(1), chunks, us('every') / 1000, us('size'));
  const finish = () => {
    burn(us('cpu'));
    reply(response, 'text/plain', pathname.slice(1).padEnd(Number(searchParams.get('size')), 'x'));
  };
  const wait = us('wait');
  if (wait > 0) setTimeout(finish, wait / 1000);
  else finish();
}

http.createServer(answer).listen(Number(process.argv[3]), process.argv[2]);
