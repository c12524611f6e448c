package netdyno

// WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone.

const (
	varint        = 0
	fixed64       = 1
	lengths       = 2
	startGroup    = 3
	endGroup      = 4
	fixed32       = 5
	maxDepth      = 100 // as Google's parsers have it: nested groups must not exhaust the stack
	longestNumber = 10  // bytes
	longestLength = 5   // and tag
)

type request struct {
	jobID    uint32
	workload int32
	stamp    []byte // a view
}

// fields reads one after the other: number and kind of the last, its value (varint) or bytes (lengths). bad: what is
// read is no Protobuf.
type fields struct {
	rest   []byte
	depth  int
	number uint32
	kind   uint32
	value  uint64
	bytes  []byte
	bad    bool
}

// next is false when there are no more, or when they are bad. Groups are skipped.
func (f *fields) next() bool {
	if f.bad || len(f.rest) == 0 {
		return false
	}
	f.tag()
	f.skipValue(f.depth)
	return !f.bad
}

func (f *fields) tag() {
	tag := f.varint(longestLength)
	f.number, f.kind = uint32(tag>>3), uint32(tag&7)
	f.bad = f.bad || f.number == 0 || tag>>32 != 0
}

func (f *fields) skipValue(depth int) {
	if f.bad {
		return
	}
	switch f.kind {
	case varint:
		f.value = f.varint(longestNumber)
	case fixed64:
		f.take(8)
	case fixed32:
		f.take(4)
	case lengths:
		f.take(f.varint(longestLength))
	case startGroup:
		f.skipGroup(depth)
	default: // a wire type that there is not, or the end of a group that never began
		f.bad = true
	}
}

func (f *fields) skipGroup(depth int) {
	group := f.number
	f.bad = f.bad || depth >= maxDepth
	for !f.bad {
		f.tag()
		if f.kind == endGroup {
			f.bad = f.bad || f.number != group
			f.kind = startGroup
			return
		}
		f.skipValue(depth + 1)
	}
}

func (f *fields) take(size uint64) {
	if f.bad = f.bad || size > uint64(len(f.rest)); !f.bad {
		f.bytes, f.rest = f.rest[:size], f.rest[size:]
	}
}

func (f *fields) varint(longest int) uint64 {
	var value uint64
	for i := 0; i < len(f.rest) && i < longest; i++ {
		value |= uint64(f.rest[i]&0x7f) << (7 * uint(i))
		if f.rest[i] < 0x80 {
			f.rest = f.rest[i+1:]
			return value
		}
	}
	f.bad = true // cut off, or too long
	return 0
}

// parseRequest returns the WorkRequest of a WorkMessage; false where the bytes do not parse or hold none. A repeated
// message is merged, and the last member of the oneof counts.
func parseRequest(body []byte) (found request, good bool) {
	message := fields{rest: body}
	for message.next() {
		if message.kind != lengths || message.number > 2 {
			continue
		}
		inner := fields{rest: message.bytes, depth: 1}
		if message.number == 1 {
			found.merge(&inner)
			good = true
		} else {
			for inner.next() { // a response must parse too
			}
			found, good = request{}, false
		}
		message.bad = inner.bad
	}
	return found, good && !message.bad
}

// merge takes over the fields of a WorkRequest. A number keeps its lower 32 bits.
func (r *request) merge(from *fields) {
	for from.next() {
		switch {
		case from.kind == varint && from.number == 1:
			r.jobID = uint32(from.value)
		case from.kind == varint && from.number == 2:
			r.workload = int32(uint32(from.value))
		case from.kind == lengths && from.number == 3:
			r.stamp = from.bytes
		}
	}
}

// appendResponse appends WorkMessage{WorkResponse{jobID, isComplete: true, stamp}}.
func appendResponse(out []byte, request *request) []byte {
	size := 2
	if request.jobID != 0 {
		size += 1 + varintSize(request.jobID)
	}
	stampSize := uint32(len(request.stamp))
	if stampSize != 0 {
		size += 1 + varintSize(stampSize) + len(request.stamp)
	}
	out = appendNumber(out, 2, lengths, uint32(size))
	if request.jobID != 0 {
		out = appendNumber(out, 1, varint, request.jobID)
	}
	out = appendNumber(out, 2, varint, 1)
	if stampSize != 0 {
		out = append(appendNumber(out, 3, lengths, stampSize), request.stamp...)
	}
	return out
}

func varintSize(value uint32) int {
	size := 1
	for ; value > 0x7f; value >>= 7 {
		size++
	}
	return size
}

// appendNumber appends a tag and the number after it.
func appendNumber(out []byte, field, kind byte, value uint32) []byte {
	out = append(out, field<<3|kind)
	for ; value > 0x7f; value >>= 7 {
		out = append(out, byte(value)|0x80)
	}
	return append(out, byte(value))
}
