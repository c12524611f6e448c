package netdyno

import (
	"bytes"
	"strconv"
)

// HTTP/1.1 GET with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, because the
// contract is about bytes: net/http would add headers of its own and answer malformed requests its own way.

const mostHead = 16 << 10

var (
	endOfHead = []byte("\r\n\r\n")
	endOfLine = endOfHead[:2]
	reasons   = map[int]string{
		200: "OK",
		400: "Bad Request",
		405: "Method Not Allowed",
		413: "Content Too Large",
		431: "Request Header Fields Too Large",
	}
)

type http struct {
	messages
	options *Options
	counts  *Shard
	maxHead int
	head    []byte // reused
}

func newHTTP(options *Options, counts *Shard) work {
	maxHead := mostHead
	if options.MaxFrame < maxHead {
		maxHead = options.MaxFrame
	}
	return &http{options: options, counts: counts, maxHead: maxHead}
}

func (w *http) receive(input []byte, effects *Effects) flow {
	return w.messages.receive(input, func(rest []byte) (flow, int) { return w.consume(rest, effects) })
}

// consume serves the complete requests at the front of input: how the stream goes on, and how many bytes they were.
func (w *http) consume(input []byte, effects *Effects) (how flow, at int) {
	for how == open {
		rest := input[at:]
		end := bytes.Index(rest, endOfHead)
		switch {
		// The last bytes of an incomplete head may be the beginning of its end, which does not count.
		case end < 0 && len(rest) < w.maxHead+len(endOfHead):
			return open, at
		case end < 0 || end > w.maxHead:
			return w.refuse(431, effects), at
		}
		how = w.serve(rest[:end], effects)
		at += end + len(endOfHead)
	}
	return how, at
}

func (w *http) serve(head []byte, effects *Effects) flow {
	status, target, keepAlive := parseHead(head)
	if status != 200 {
		return w.refuse(status, effects)
	}
	w.counts.Requests.Add(1)
	effects.serve(w.options.ServiceKind, w.options.ServiceTime)
	w.respond(200, target, keepAlive, effects)
	if !keepAlive {
		return ended
	}
	return open
}

func (w *http) refuse(status int, effects *Effects) flow {
	w.respond(status, []byte(reasons[status]), false, effects)
	return failed
}

func (w *http) respond(status int, body []byte, keepAlive bool, effects *Effects) {
	head := append(w.head[:0], "HTTP/1.1 "...)
	head = strconv.AppendInt(head, int64(status), 10)
	head = append(append(head, ' '), reasons[status]...)
	head = append(head, "\r\nContent-Type: text/plain\r\nContent-Length: "...)
	head = strconv.AppendInt(head, int64(len(body)), 10)
	head = append(head, endOfLine...)
	if !keepAlive {
		head = append(head, "Connection: close\r\n"...)
	}
	w.head = append(head, endOfLine...)
	effects.reply(w.head, body)
}

// parseHead says what of a head, without the empty line that ends it, matters here; status 200 when it is good.
func parseHead(head []byte) (status int, target []byte, keepAlive bool) {
	line, rest, _ := bytes.Cut(head, endOfLine)
	method, line, twoWords := bytes.Cut(line, []byte{' '})
	target, version, threeWords := bytes.Cut(line, []byte{' '})
	keepAlive = string(version) == "HTTP/1.1"
	if !twoWords || !threeWords || !all(method, isOfToken) || !all(target, isGraphic) ||
		!(keepAlive || string(version) == "HTTP/1.0") {
		return 400, nil, false
	}
	status = 200
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, endOfLine)
		name, value, good := bytes.Cut(line, []byte{':'})
		if !good || !all(name, isOfToken) {
			return 400, nil, false
		}
		value = trim(value)
		switch {
		case is(name, "connection") && listsClose(value):
			keepAlive = false
		case is(name, "transfer-encoding"), is(name, "content-length") && string(value) != "0":
			status = 413
		}
	}
	if string(method) != "GET" {
		status = 405
	}
	return status, target, keepAlive
}

// listsClose: a comma-separated list (RFC 9110, 5.6.1) holds "close".
func listsClose(list []byte) bool {
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, []byte{','})
		if is(trim(item), "close") {
			return true
		}
	}
	return false
}

// is compares without case; what is not ASCII is no name.
func is(text []byte, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i := range text {
		if lower(text[i]) != name[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

// trim takes away the blanks and tabs around a text, and nothing else.
func trim(text []byte) []byte {
	return bytes.Trim(text, " \t")
}

func all(text []byte, good func(byte) bool) bool {
	for _, c := range text {
		if !good(c) {
			return false
		}
	}
	return len(text) > 0
}

func isOfToken(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z' || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}

func isGraphic(c byte) bool {
	return ' ' < c && c < 0x7f
}
