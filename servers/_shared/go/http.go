package netdyno

import (
	"bytes"
	"strconv"
	"time"
)

// HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand, as
// the contract is about bytes: net/http would add headers of its own and answer malformed requests its own way. Of the
// workload web (web.go) also POST.

const mostHead = 16 << 10

var (
	endOfHead = []byte("\r\n\r\n")
	endOfLine = endOfHead[:2]
)

const (
	statusOK       = "200 OK"
	badRequest     = "400 Bad Request"
	notImplemented = "501 Not Implemented"
)

const textType = "text/plain"

// What a reply says of its connection; nothing where that stays by default.
const (
	closes = "close"
	stays  = "keep-alive"
)

type http struct {
	messages
	options    *Options
	counts     *Shard
	maxHead    int
	takesPosts bool
	answer     func(to httpRequest, effects *Effects) bool // false: the request is refused
	head       []byte                                      // reused
	date       string                                      // of the second that stands below
	second     int64
}

// httpRequest is what of a head matters here; statusOK when it is good.
type httpRequest struct {
	status     string
	target     []byte
	wantsBody  bool // not of HEAD
	posts      bool
	bodySize   int
	connection string
}

func newHTTP(options *Options, counts *Shard) work {
	w := makeHTTP(options, counts)
	w.answer = w.answerTarget
	return w
}

func makeHTTP(options *Options, counts *Shard) *http {
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
		for bytes.HasPrefix(input[at:], endOfLine) {
			at += len(endOfLine) // RFC 9112, 2.2
		}
		rest := input[at:]
		end := bytes.Index(rest, endOfHead)
		switch {
		// The last bytes of an incomplete head may be the beginning of its end, which does not count.
		case end < 0 && len(rest) < w.maxHead+len(endOfHead):
			return open, at
		case end < 0 || end > w.maxHead:
			return w.refuse(badRequest, effects), at
		}
		request := parseHead(rest[:end], w.takesPosts)
		if request.bodySize > w.options.MaxFrame {
			request = httpRequest{status: badRequest}
		}
		whole := end + len(endOfHead) + request.bodySize
		if len(rest) < whole {
			return open, at
		}
		how = w.serve(request, effects)
		at += whole
	}
	return how, at
}

func (w *http) serve(request httpRequest, effects *Effects) flow {
	if request.status != statusOK {
		return w.refuse(request.status, effects)
	}
	if !w.answer(request, effects) {
		return w.refuse(badRequest, effects)
	}
	w.counts.Requests.Add(1)
	if request.connection == closes {
		return ended
	}
	return open
}

func (w *http) answerTarget(request httpRequest, effects *Effects) bool {
	effects.serve(w.options.ServiceKind, w.options.ServiceTime)
	w.respond(request, textType, request.target, effects)
	return true
}

func (w *http) refuse(status string, effects *Effects) flow {
	w.respond(httpRequest{status: status, connection: closes}, textType, nil, effects)
	return failed
}

func (w *http) respond(to httpRequest, contentType string, body []byte, effects *Effects) {
	head := w.makeHead(to, contentType, "Content-Length: "+strconv.Itoa(len(body)))
	if !to.wantsBody {
		body = nil
	}
	effects.reply(head, body)
}

// makeHead returns the head of a reply, valid until the next; framing is the header that says where the body ends.
func (w *http) makeHead(to httpRequest, contentType, framing string) []byte {
	if now := time.Now(); w.date == "" || now.Unix() != w.second {
		w.second, w.date = now.Unix(), now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	head := append(append(w.head[:0], "HTTP/1.1 "...), to.status...)
	head = append(append(head, "\r\nDate: "...), w.date...)
	head = append(append(head, "\r\nContent-Type: "...), contentType...)
	head = append(append(append(head, endOfLine...), framing...), endOfLine...)
	if to.connection != "" {
		head = append(append(append(head, "Connection: "...), to.connection...), endOfLine...)
	}
	w.head = append(head, endOfLine...)
	return w.head
}

// parseHead says what of a head, without the empty line that ends it, matters here.
func parseHead(head []byte, takesPosts bool) httpRequest {
	line, rest, _ := bytes.Cut(head, endOfLine)
	method, line, twoWords := bytes.Cut(line, []byte{' '})
	target, version, threeWords := bytes.Cut(line, []byte{' '})
	isNew := string(version) == "HTTP/1.1"
	if !twoWords || !threeWords || !all(method, isOfToken) || !all(target, isGraphic) ||
		!(isNew || string(version) == "HTTP/1.0") {
		return httpRequest{status: badRequest}
	}
	posts, bodySize := takesPosts && string(method) == "POST", 0
	hosts, saysClose, saysKeepAlive, hasBody := 0, false, false, false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, endOfLine)
		name, value, good := bytes.Cut(line, []byte{':'})
		if !good || !all(name, isOfToken) || bytes.ContainsAny(value, "\x00\r\n") {
			return httpRequest{status: badRequest}
		}
		value = trim(value)
		switch {
		case is(name, "host"):
			hosts++
		case is(name, "connection"):
			saysClose = saysClose || lists(value, closes)
			saysKeepAlive = saysKeepAlive || lists(value, stays)
		case posts && is(name, "content-length"):
			size, ok := parseNumber(value, "")
			if !ok {
				return httpRequest{status: badRequest}
			}
			bodySize = size
		case is(name, "transfer-encoding"), is(name, "content-length") && string(value) != "0":
			hasBody = true
		}
	}
	switch verb := string(method); {
	case hosts > 1 || hosts == 0 && isNew:
		return httpRequest{status: badRequest}
	case verb != "GET" && verb != "HEAD" && !posts: // RFC 9110, 9.1: also with a body
		return httpRequest{status: notImplemented}
	case hasBody:
		return httpRequest{status: badRequest}
	}
	good := httpRequest{status: statusOK, target: target, wantsBody: string(method) != "HEAD", posts: posts, bodySize: bodySize}
	switch {
	case saysClose || !isNew && !saysKeepAlive:
		good.connection = closes
	case !isNew:
		good.connection = stays
	}
	return good
}

// lists says whether a comma-separated list (RFC 9110, 5.6.1) holds the token.
func lists(list []byte, token string) bool {
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, []byte{','})
		if is(trim(item), token) {
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
