package main

import (
	"sync"
	"time"

	"netdyno"
)

// aWhile is how long a sender lets the goroutines that write have their turn.
const aWhile = 100 * time.Microsecond

// outbox holds the frames that wait for one reader, bounded in what they hold. What was taken counts until more is
// taken, as it is sent then.
type outbox struct {
	limit  int
	reads  func() bool // the reader leaves room for more
	mutex  sync.Mutex
	filled sync.Cond
	frames [][]byte
	held   int // by them, and by what was taken last
	taken  int // by that
	closed bool
}

func newOutbox(limit int, reads func() bool) *outbox {
	o := &outbox{limit: limit, reads: reads}
	o.filled.L = &o.mutex
	return o
}

// add returns false, and takes nothing from then on, when more than the limit would wait for a stalled reader:
// it is slow. One frame may always wait. Where there is much, the sender must wait until it is behind no more. Any
// goroutine.
func (o *outbox) add(frame []byte) (taken, much bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.closed {
		return true, false
	}
	held := len(frame) + netdyno.FrameOverhead
	if o.held > 0 && o.held+held > o.limit && !o.reads() {
		o.closed, o.frames = true, nil
		o.filled.Signal()
		return false, false
	}
	o.held += held
	o.frames = append(o.frames, frame)
	if len(o.frames) == 1 {
		o.filled.Signal()
	}
	return true, o.held > o.limit/2
}

// waitWhileBehind returns when there is room again, or the reader does not read. A goroutine that is late with
// writing is not the reader's fault.
func (o *outbox) waitWhileBehind() {
	for o.behind() {
		time.Sleep(aWhile)
	}
}

func (o *outbox) behind() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return !o.closed && o.held > o.limit/2 && o.reads()
}

// close: nothing more is taken; what waits can still be.
func (o *outbox) close() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.closed = true
	o.filled.Signal()
}

// take waits until there is something, and returns all of it; nothing once it is closed and empty. The memory of spare
// is used for what comes next.
func (o *outbox) take(spare [][]byte) [][]byte {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.held -= o.taken
	o.taken = 0
	for len(o.frames) == 0 && !o.closed {
		o.filled.Wait()
	}
	frames := o.frames
	o.frames, o.taken = spare[:0], o.held
	return frames
}
