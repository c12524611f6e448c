// The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web).
'use strict';

const { HttpSession, TEXT, parseNumber } = require('./http.js');

const JSON_TYPE = 'application/json';
const ITEMS = '[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]';
const MOST_OF_A_QUERY = 10_000_000; // microseconds, or bytes

const EVENTS = 'text/event-stream';
const MOST_CHUNKS = 10_000;
const CHUNK_OVERHEAD = 128; // what a chunk counts beside its data

/** The numbers of a query, 0 where one is missing; null where a value is none. */
function parseQuery(query) {
  const work = { wait: 0, cpu: 0, size: 0, chunks: 0, every: 0 };
  for (const part of query === '' ? [] : query.split('&')) {
    const [name, value = ''] = part.split('=', 2);
    const number = parseNumber(value, name === 'size' || name === 'chunks' ? '' : 'us');
    if (number === null || number > MOST_OF_A_QUERY) return null;
    if (name in work) work[name] = number;
  }
  return work;
}

class WebSession extends HttpSession {
  takesPosts = true;

  answer(request) {
    const mark = request.target.indexOf('?');
    const path = mark < 0 ? request.target : request.target.slice(0, mark);
    if (path === '/items') {
      this.respond(request, JSON_TYPE, request.posts ? String(request.bodySize) : ITEMS);
      return true;
    }
    const work = parseQuery(mark < 0 ? '' : request.target.slice(mark + 1));
    if (work === null || !path.startsWith('/') || request.posts || work.chunks > MOST_CHUNKS) return false;
    if (work.size > this.options.maxFrame) return false;
    if (work.chunks * (Math.max(work.size, path.length) + CHUNK_OVERHEAD) > this.options.maxFrame) return false;
    this.effects.serve('wait', work.wait * 1000);
    this.effects.serve('burn', work.cpu * 1000);
    if (work.chunks > 0) this.#stream(request, path.slice(1), work);
    else this.respond(request, TEXT, path.slice(1).padEnd(work.size, 'x'));
    return true;
  }

  /** Each chunk leaves when it is due, by a schedule that begins with the request. */
  #stream(request, stamp, { chunks, every, size }) {
    this.beginChunks(request, EVENTS);
    if (!request.wantsBody) return;
    const begin = performance.now() * 1e6;
    for (let number = 0; number < chunks; number++) {
      if (number > 0 && every > 0) this.effects.serve('until', begin + number * every * 1000);
      this.addChunk(`data: ${`${stamp}${String(number).padStart(4, '0')}`.padEnd(size, 'x')}\n\n`);
    }
    this.addChunk('');
  }
}

module.exports = { WebSession };
