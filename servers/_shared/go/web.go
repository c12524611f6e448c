package netdyno

import (
	"bytes"
	"strconv"
	"time"
)

// The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web).

const (
	jsonType    = "application/json"
	items       = `[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]`
	mostOfQuery = 10_000_000 // microseconds, or bytes
)

// webQuery is the query of a request; nothing that is missing is requested.
type webQuery struct {
	wait, cpu time.Duration
	size      int
}

func newWeb(options *Options, counts *Shard) work {
	w := makeHTTP(options, counts)
	w.takesPosts = true
	w.answer = w.answerWeb
	return w
}

func (w *http) answerWeb(request httpRequest, effects *Effects) bool {
	path, query, _ := bytes.Cut(request.target, []byte{'?'})
	if string(path) == "/items" {
		body := []byte(items)
		if request.posts {
			body = strconv.AppendInt(nil, int64(request.bodySize), 10)
		}
		w.respond(request, jsonType, body, effects)
		return true
	}
	work, good := parseQuery(query)
	if !good || !bytes.HasPrefix(path, []byte{'/'}) || request.posts || work.size > w.options.MaxFrame {
		return false
	}
	effects.serve(Wait, work.wait)
	effects.serve(Burn, work.cpu)
	body := path[1:]
	if missing := work.size - len(body); missing > 0 {
		body = append(append([]byte{}, body...), bytes.Repeat([]byte{'x'}, missing)...)
	}
	w.respond(request, textType, body, effects)
	return true
}

func parseQuery(query []byte) (work webQuery, good bool) {
	for len(query) > 0 {
		var part []byte
		part, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(part, []byte{'='})
		unit := "us"
		if string(name) == "size" {
			unit = ""
		}
		number, ok := parseNumber(value, unit)
		if !ok || number > mostOfQuery {
			return work, false
		}
		switch string(name) {
		case "wait":
			work.wait = time.Duration(number) * time.Microsecond
		case "cpu":
			work.cpu = time.Duration(number) * time.Microsecond
		case "size":
			work.size = number
		}
	}
	return work, true
}

// parseNumber says which whole number stands before the unit, and whether one does.
func parseNumber(text []byte, unit string) (int, bool) {
	digits := bytes.TrimSuffix(text, []byte(unit))
	if len(text)-len(digits) != len(unit) || !all(digits, func(c byte) bool { return '0' <= c && c <= '9' }) {
		return 0, false
	}
	number, err := strconv.Atoi(string(digits))
	return number, err == nil
}
