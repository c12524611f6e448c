package netdyno

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web).

const (
	jsonType    = "application/json"
	items       = `[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]`
	eventType   = "text/event-stream"
	mostOfQuery = 10_000_000 // microseconds, or bytes
	mostChunks  = 10_000
)

// webQuery is the query of a request; nothing that is missing is requested.
type webQuery struct {
	wait, cpu, every time.Duration
	size, chunks     int
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
	if !good || !bytes.HasPrefix(path, []byte{'/'}) || request.posts || work.chunks > mostChunks ||
		work.size > w.options.MaxFrame || work.chunks > w.options.MaxFrame/(longest(work.size, len(path))+FrameOverhead) {
		return false
	}
	effects.serve(Wait, work.wait)
	effects.serve(Burn, work.cpu)
	if work.chunks > 0 {
		w.stream(request, path[1:], work, effects)
	} else {
		w.respond(request, textType, fill(path[1:], work.size), effects)
	}
	return true
}

// stream has each chunk leave when it is due, by a schedule that begins with the request.
func (w *http) stream(request httpRequest, stamp []byte, work webQuery, effects *Effects) {
	effects.reply(w.makeHead(request, eventType, "Transfer-Encoding: chunked"), nil)
	if !request.wantsBody {
		return
	}
	begin := time.Now()
	for number := 0; number < work.chunks; number++ {
		if number > 0 && work.every > 0 {
			effects.waitUntil(begin.Add(time.Duration(number) * work.every))
		}
		data := fill(fmt.Appendf(nil, "%s%04d", stamp, number), work.size)
		effects.reply(fmt.Appendf(nil, "%x\r\ndata: %s\n\n\r\n", len("data: \n\n")+len(data), data), nil)
	}
	effects.reply([]byte("0\r\n\r\n"), nil)
}

func longest(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func fill(text []byte, size int) []byte {
	if missing := size - len(text); missing > 0 {
		return append(append([]byte{}, text...), bytes.Repeat([]byte{'x'}, missing)...)
	}
	return text
}

func parseQuery(query []byte) (work webQuery, good bool) {
	for len(query) > 0 {
		var part []byte
		part, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(part, []byte{'='})
		unit := "us"
		if string(name) == "size" || string(name) == "chunks" {
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
		case "every":
			work.every = time.Duration(number) * time.Microsecond
		case "size":
			work.size = number
		case "chunks":
			work.chunks = number
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
