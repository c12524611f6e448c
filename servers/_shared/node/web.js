// The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web).
'use strict';

const { HttpSession, TEXT, parseNumber } = require('./http.js');

const JSON_TYPE = 'application/json';
const ITEMS = '[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]';
const MOST_OF_A_QUERY = 10_000_000; // microseconds, or bytes

/** {wait, cpu, size} of a query, 0 where one is missing; null where a value is none. */
function parseQuery(query) {
  const work = { wait: 0, cpu: 0, size: 0 };
  for (const part of query === '' ? [] : query.split('&')) {
    const [name, value = ''] = part.split('=', 2);
    const number = parseNumber(value, name === 'size' ? '' : 'us');
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
    if (work === null || !path.startsWith('/') || request.posts || work.size > this.options.maxFrame) return false;
    this.effects.serve('wait', work.wait * 1000);
    this.effects.serve('burn', work.cpu * 1000);
    this.respond(request, TEXT, path.slice(1).padEnd(work.size, 'x'));
    return true;
  }
}

module.exports = { WebSession };
